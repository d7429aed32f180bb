"""Undiscounted return, of rewards as the environment gives them."""

from rbve.evaluation.metric import Array, Metric, Record

METRIC = Metric(
    "return", "return", "final return [95%]", "higher", statistic="interval", always=True, order=10
)


def per_episode(record: Record) -> Array:
    return record.reward.sum(axis=0)
