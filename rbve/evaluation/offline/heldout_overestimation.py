"""What the policy claims beyond what the log got: mean of Q(s, π(s)) − G(s), held-out episodes.

G is the return of the behaviour. A better policy may claim more than that; how much more is what
over-estimation would look like too, and off-policy evaluation tells the two apart.
"""

from rbve.evaluation.metric import HeldOut, Metric, mean

HELD_OUT = True
METRIC = Metric(
    "heldout_overestimation", "claimed value − logged return", "held-out claim",
    "neither", values=True, logarithmic=True, order=80,
)  # fmt: skip


def evaluate(case: HeldOut) -> tuple[float, int]:
    return mean(case.errors(case.choice))
