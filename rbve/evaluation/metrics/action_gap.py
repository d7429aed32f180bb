"""Action gap: mean of best minus second best Q over the states of an episode."""

from rbve.evaluation.metric import Array, Metric, Record

METRIC = Metric(
    "action_gap", "action gap", "action gap", "neither", values=True, always=True, nonnegative=True,
    order=60,
)  # fmt: skip


def per_episode(record: Record) -> Array:
    return record.mean(record.gap)
