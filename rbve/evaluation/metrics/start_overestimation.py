"""Over-estimation error of the first state alone: max(Q(s₀, a₀) − G(s₀), 0)²."""

from rbve.evaluation.metric import Array, Metric, Record

METRIC = Metric(
    "start_overestimation", "over-estimation error at the first state",
    "over-estimation at the start (median)", "lower", values=True, episodes="terminated",
    statistic="median", table=False, logarithmic=True, nonnegative=True, order=40,
)  # fmt: skip


def per_episode(record: Record) -> Array:
    excess = record.error.clip(0.0)
    return (excess * excess)[0]
