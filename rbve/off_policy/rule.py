"""The rule that chooses: which candidate comes first, and whether it should be deployed.

    rank       by DR where its gates pass, else by FQE, which is always there, within the returns
               that the log has seen: FQE promises most where the log holds least; of equal ones
               the one that takes more of the logged actions
    deploy     the first in that order whose gates pass and whose difference to the behaviour is
               above 0 with the level asked for, shared out over all candidates (Bonferroni), since
               the best of many is partly the luckiest
    stay       some candidate passed its gates and none is shown to be better
    collect    no candidate passed: what failed most often says what is missing

Its measured regret stands in docs/ope.md.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rbve.off_policy import intervals
from rbve.off_policy.judge import OpeResult, PolicyJudgement, ValueEstimate

Decision = Literal["deploy", "stay", "collect"]
WORDS: dict[Decision, str] = {
    "deploy": "Deploy this policy",
    "stay": "Stay with today's behaviour",
    "collect": "Collect this first",
}


@dataclass(frozen=True)
class Recommendation:
    decision: Decision
    policy: str | None  # to deploy; else the candidate that came first
    reasons: tuple[str, ...]
    ranking: tuple[str, ...]  # candidates, best first

    @property
    def words(self) -> str:
        return WORDS[self.decision]


def guess(judgement: PolicyJudgement, returns: np.ndarray) -> float:
    """The number a candidate is ranked by, which need not be an estimate.

    Args:
        judgement: Of the candidate.
        returns: (E,) of the behaviour, in the log that judged.
    """
    by_name = {each.name: each for each in judgement.estimates}
    doubly_robust, fitted = by_name["dr"], by_name["fqe"]
    if doubly_robust.passed:
        return doubly_robust.value
    if not np.isfinite(fitted.value):
        return -np.inf
    # Each episode's by itself, else one far beyond all returns would make up for others.
    return float(np.clip(fitted.influence, returns.min(), returns.max()).mean())


def ranked_judgements(result: OpeResult) -> list[PolicyJudgement]:
    """Best first."""

    def place(judgement: PolicyJudgement) -> tuple[float, float]:
        return guess(judgement, result.returns), judgement.agreement

    return sorted(result.judgements, key=place, reverse=True)


def recommend(result: OpeResult) -> Recommendation:
    """What to do with the candidates that a log has judged."""
    ranked = ranked_judgements(result)
    names = tuple(each.policy for each in ranked)
    level = 1 - (1 - result.level) / max(len(ranked), 1)
    passed = [(each, best) for each in ranked if (best := each.best) is not None]
    for judgement, best in passed:
        low, high = _difference(best, result, level)
        if low > 0:
            reasons = [
                f"{judgement.policy} is worth {best.difference:.4g} [{low:.4g}, {high:.4g}] more "
                f"an episode than the behaviour ({best.label}, {level:.1%} interval, shared out "
                f"over {len(ranked)} candidates)",
                f"{best.label} passed all its gates; {len(passed)} of {len(ranked)} candidates did",
            ]
            if judgement is not ranked[0]:
                reasons.append(f"{names[0]} may be better still, and {_why_not(ranked[0])}")
            return Recommendation("deploy", judgement.policy, tuple(reasons), names)
    if passed:
        judgement, best = passed[0]
        low, high = _difference(best, result, level)
        reasons = [
            f"none of {len(passed)} candidates that could be judged is shown to be better; the "
            f"nearest, {judgement.policy}, differs by {best.difference:.4g} [{low:.4g}, {high:.4g}]"
            f" ({best.label}, {level:.1%} interval)",
            _episodes_needed(best, result, level),
        ]
        return Recommendation("stay", judgement.policy, tuple(filter(None, reasons)), names)
    return Recommendation("collect", names[0], _missing(ranked), names)


def _difference(best: ValueEstimate, result: OpeResult, level: float) -> intervals.Interval:
    make = intervals.METHODS[result.interval]
    return make(best.influence - result.returns, level)


def _episodes_needed(best: ValueEstimate, result: OpeResult, level: float) -> str:
    """How many episodes would tell a difference of that size from nothing."""
    low, high = _difference(best, result, level)
    reach = (high - low) / 2
    if best.difference <= 0 or not np.isfinite(reach):
        return ""
    needed = int(np.ceil(result.episodes * (reach / best.difference) ** 2))
    if needed <= result.episodes:
        return ""
    return f"if the difference is real, about {needed:,} held-out episodes would show it"


def _why_not(judgement: PolicyJudgement) -> str:
    failed = [] if judgement.best else judgement.refusing
    return f"this log cannot tell: {failed[0]}" if failed else "is not shown to be"


def _missing(ranked: list[PolicyJudgement]) -> tuple[str, ...]:
    """What stood in the way, most frequent first, in the words of the candidate that came first."""
    counts = Counter(gate.name for each in ranked for gate in each.refusing)
    told = []
    for name, count in counts.most_common(3):
        gate = next(g for each in ranked for g in each.refusing if g.name == name)
        told.append(f"{count} of {len(ranked)} candidates fail on {name}: {gate}")
    return tuple(told) or ("no estimate could be made",)
