"""Steps of an episode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rbve.evaluation.metric import Metric

if TYPE_CHECKING:
    from rbve.evaluation.record import Record

METRIC = Metric(
    "episode_length", "episode length", "episode length", "neither", table=False, order=12
)


def per_episode(record: Record) -> Any:
    """Steps until the episode ended."""
    return record.lengths
