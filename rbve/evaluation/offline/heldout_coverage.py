"""Share of the policy's choices in held-out states that training episodes took in like states.

Like states are the regions of the audit, and an action is covered in a region from some rows on
(rbve/audit/support.py). What is not covered, nothing in the data speaks for.
"""

from rbve.evaluation.metric import HeldOut, Metric, mean

HELD_OUT = True
METRIC = Metric(
    "heldout_coverage", "share of choices covered", "covered", "higher", style="percent",
    nonnegative=True, order=86,
)  # fmt: skip


def evaluate(case: HeldOut) -> tuple[float, int]:
    return mean(case.of(case.supported, case.choice))
