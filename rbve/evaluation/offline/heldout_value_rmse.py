"""Size of the value error on held-out episodes: root mean square of Q(s, a) − G(s).

Returns vary for like decisions, so it does not reach 0, not even with the true values.
"""

import math

from rbve.evaluation.metric import HeldOut, Metric, mean

HELD_OUT = True
METRIC = Metric(
    "heldout_value_rmse", "root mean square of Q − G", "held-out RMS", "lower", values=True,
    logarithmic=True, nonnegative=True, order=82,
)  # fmt: skip


def evaluate(case: HeldOut) -> tuple[float, int]:
    square, count = mean(case.errors(case.action) ** 2)
    return math.sqrt(square), count
