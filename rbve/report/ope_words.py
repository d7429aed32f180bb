"""Words and tables that pages and terminals share when they tell what policies are worth."""

import math
from collections.abc import Sequence

from rbve.off_policy.judge import OpeResult, PolicyJudgement, ValueEstimate
from rbve.report.render import part

BLUE, GREY, ORANGE = "#0b5cad", "#8a8f98", "#c2571a"


def number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.4g}".replace("-", "−")


def with_interval(value: float, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return number(value)
    return f"{number(value)} [{number(interval[0])}, {number(interval[1])}]"


def refusal(judgement: PolicyJudgement, estimate: ValueEstimate) -> str:
    """Why a number is no estimate, in one line."""
    gates = [gate for gate in judgement.gates if gate.name in estimate.failed]
    if "no overlap" in estimate.failed:
        return "no logged episode is one the policy could have made"
    return "; ".join(str(gate) for gate in gates)


def verdict(judgement: PolicyJudgement) -> str:
    """One sentence on a policy against the behaviour."""
    best = judgement.best
    if best is None:
        return "cannot be judged by this log"
    low, high = best.difference_interval or (-math.inf, math.inf)
    if low > 0:
        return "better than the behaviour"
    if high < 0:
        return "worse than the behaviour"
    return "not told apart from the behaviour"


def acting_words(result: OpeResult) -> str:
    return f"; trained policies act {result.acting}" if result.acting else ""


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Of text: cells wrap and begin on the left, and on a phone a row is a card."""
    return part("table", heads[0], heads, rows, kind="words cards")
