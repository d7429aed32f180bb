"""Over-estimation error: mean of max(Q(s, a) − G(s), 0)² over the states of an episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rbve.evaluation.metric import Metric

if TYPE_CHECKING:
    from rbve.evaluation.record import Record

METRIC = Metric(
    "overestimation",
    "over-estimation error",
    "over-estimation (median)",
    "lower",
    values=True,
    episodes="terminated",
    statistic="median",  # a single run can dwarf the rest
    always=True,
    logarithmic=True,
    nonnegative=True,
    order=30,
)


def per_episode(record: Record) -> Any:
    """Over all states visited."""
    excess = record.error.clip(0.0)
    return record.mean(excess * excess)
