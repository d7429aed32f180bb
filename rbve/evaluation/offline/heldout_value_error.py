"""Value error on held-out episodes: mean of Q(s, a) − G(s), a the logged action."""

from rbve.evaluation.metric import HeldOut, Metric, mean

HELD_OUT = True
METRIC = Metric(
    "heldout_value_error", "value error, Q − G", "held-out error", "zero", values=True,
    logarithmic=True, order=81,
)  # fmt: skip


def evaluate(case: HeldOut) -> tuple[float, int]:
    return mean(case.errors(case.action))
