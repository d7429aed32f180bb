"""Over-estimation error: mean of max(Q(s, a) − G(s), 0)² over the states of an episode."""

from rbve.evaluation.metric import Array, Metric, Record

METRIC = Metric(
    # Medians, as a single run can dwarf the rest.
    "overestimation", "over-estimation error", "over-estimation (median)", "lower", values=True,
    episodes="terminated", statistic="median", always=True, logarithmic=True, nonnegative=True,
    order=30,
)  # fmt: skip


def per_episode(record: Record) -> Array:
    excess = record.error.clip(0.0)
    return record.mean(excess * excess)
