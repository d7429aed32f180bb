"""Undiscounted return of rewards in [−1, 1], where training clips them."""

from rbve.evaluation.metric import Array, Metric, Record

METRIC = Metric(
    "clipped_return", "clipped return", "clipped return", "higher", table=False, order=14
)


def per_episode(record: Record) -> Array | None:
    return record.trained_reward.sum(axis=0) if record.clipped else None
