"""Steps of an episode."""

from typing import Any

from rbve.evaluation.metric import Metric, Record

METRIC = Metric(
    "episode_length", "episode length", "episode length", "neither", table=False, order=12
)


def per_episode(record: Record) -> Any:
    """Steps until the episode ended."""
    return record.lengths
