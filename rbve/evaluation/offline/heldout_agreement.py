"""Share of held-out decisions in which the policy chooses what the log did."""

from rbve.evaluation.metric import HeldOut, Metric, mean

HELD_OUT = True
METRIC = Metric(
    "heldout_agreement", "share of choices as logged", "as logged", "neither",
    style="percent", nonnegative=True, order=85,
)  # fmt: skip


def evaluate(case: HeldOut) -> tuple[float, int]:
    return mean(case.choice == case.action)
