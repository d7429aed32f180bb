"""Undiscounted return, of rewards as the environment gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rbve.evaluation.metric import Metric

if TYPE_CHECKING:
    from rbve.evaluation.record import Record

METRIC = Metric(
    "return", "return", "final return [95%]", "higher", statistic="interval", always=True, order=10
)


def per_episode(record: Record) -> Any:
    """The sum of rewards."""
    return record.reward.sum(axis=0)
