"""Value error: mean of Q(s, a) − G(s) over the states of an episode."""

from typing import Any

from rbve.evaluation.metric import Metric, Record

METRIC = Metric(
    "value_error", "value error, Q − G", "value error", "zero", values=True, episodes="terminated",
    always=True, logarithmic=True, order=50,
)  # fmt: skip


def per_episode(record: Record) -> Any:
    """Over all states visited."""
    return record.mean(record.error)
