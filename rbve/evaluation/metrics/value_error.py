"""Value error: mean of Q(s, a) − G(s) over the states of an episode."""

from rbve.evaluation.metric import Array, Metric, Record

METRIC = Metric(
    "value_error", "value error, Q − G", "value error", "zero", values=True, episodes="terminated",
    always=True, logarithmic=True, order=50,
)  # fmt: skip


def per_episode(record: Record) -> Array:
    return record.mean(record.error)
