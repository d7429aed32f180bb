"""Steps of an episode."""

from rbve.evaluation.metric import Array, Metric, Record

METRIC = Metric(
    "episode_length", "episode length", "episode length", "neither", table=False, order=12
)


def per_episode(record: Record) -> Array:
    return record.lengths
