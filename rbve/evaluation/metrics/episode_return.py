"""Undiscounted return, of rewards as the environment gives them."""

from typing import Any

from rbve.evaluation.metric import Metric, Record

METRIC = Metric(
    "return", "return", "final return [95%]", "higher", statistic="interval", always=True, order=10
)


def per_episode(record: Record) -> Any:
    """The sum of rewards."""
    return record.reward.sum(axis=0)
