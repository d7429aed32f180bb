"""Action gap: mean of best minus second best Q over the states of an episode."""

from typing import Any

from rbve.evaluation.metric import Metric, Record

METRIC = Metric(
    "action_gap", "action gap", "action gap", "neither", values=True, always=True, nonnegative=True,
    order=60,
)  # fmt: skip


def per_episode(record: Record) -> Any:
    """Over all states visited."""
    return record.mean(record.gap)
