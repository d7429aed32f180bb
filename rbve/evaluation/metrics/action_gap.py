"""Action gap: mean of best minus second best Q over the states of an episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rbve.evaluation.metric import Metric

if TYPE_CHECKING:
    from rbve.evaluation.record import Record

METRIC = Metric(
    "action_gap",
    "action gap",
    "action gap",
    "neither",
    values=True,
    always=True,
    nonnegative=True,
    order=60,
)


def per_episode(record: Record) -> Any:
    """Over all states visited."""
    return record.mean(record.gap)
