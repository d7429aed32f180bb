"""Hidden confounding: how far propensities may be wrong before a conclusion falls.

Marginal sensitivity model (Tan, 2006): what decided an action may hold more than the log shows, but
changes the odds of the action taken by a factor of at most Λ,

    1/Λ ≤ [ e / (1 − e) ] / [ μ / (1 − μ) ] ≤ Λ,    so that    1/e ∈ 1 + (1/μ − 1) · [1/Λ, Λ]

with e the true and μ the logged probability. The bounds of the self-normalised value

    max and min of Σ_i w_i G_i / Σ_i w_i,    w_i = Π_t π(a_it | s_it) / e_it

over all such e are exact (Zhao et al., 2019): the weights that attain them are at their largest
where G is above a threshold and at their smallest below, or the other way round, so that one pass
over episodes sorted by G finds them. The factors of an episode vary on their own, by at most Λ^T in
all; after more than a few steps that says nothing, and longer logs are refused.

Sampling error is not in these bounds: they answer another question than an interval does.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rbve.off_policy.case import OpeCase

MOST_STEPS = 5
_LARGEST = 1e6  # Λ up to which a breakdown is looked for


class Bounds(NamedTuple):
    odds: float  # Λ
    low: float
    high: float


def sensitivity(case: OpeCase, odds: Sequence[float]) -> list[Bounds]:
    """Bounds of a policy's value for every factor Λ ≥ 1 of the odds; 1 gives WIS's estimate.

    Raises:
        ValueError: A factor below 1, episodes too long, or no episode the policy could have made.
    """
    curve = _Curve(case)
    return [curve.bounds(each) for each in odds]


def breakdown(case: OpeCase, behaviour: float) -> float:
    """The smallest Λ at which the policy may be no different from the behaviour's own value.

    1 where they are equal; infinite where no confounding would do.
    """
    curve = _Curve(case)

    def explains(odds: float) -> bool:
        _, low, high = curve.bounds(odds)
        return low <= behaviour <= high

    low, high = 0.0, math.log(_LARGEST)
    if explains(1.0):
        return 1.0
    if not explains(_LARGEST):
        return math.inf
    while high - low > 1e-6:  # bounds widen with Λ
        middle = (low + high) / 2
        low, high = (low, middle) if explains(math.exp(middle)) else (middle, high)
    return math.exp(high)


class _Curve:
    """A case with its episodes sorted by return."""

    def __init__(self, case: OpeCase) -> None:
        longest = int(case.log.lengths.max())
        if longest > MOST_STEPS:
            raise ValueError(
                f"bounds under hidden confounding are for episodes of up to {MOST_STEPS} decisions "
                f"and this log has {longest}: factors multiply, and the bounds would be as wide as "
                "the returns; give a log of shorter episodes"
            )
        if not case.log.last(case.weight).any():
            raise ValueError(
                "no episode of the log is one that the policy could have made, so there is no "
                "value to bound; give a policy nearer to the log"
            )
        self.case = case
        self.order = np.argsort(case.returns, kind="stable")
        self.returns = case.returns[self.order]

    def bounds(self, odds: float) -> Bounds:
        if not odds >= 1 or not math.isfinite(odds):
            raise ValueError(f"the odds change by a factor of 1 or more; got {odds:g}")
        case = self.case
        taken = case.policy[np.arange(len(case.log.action)), case.log.action]
        spare = 1 / case.behaviour - 1
        least, most = (
            case.log.last(case.log.cumulative_product(taken * (1 + spare * factor)))[self.order]
            for factor in (1 / odds, odds)
        )
        low = _ratios(self.returns, most, least).min()  # most weight on the smallest returns
        high = _ratios(self.returns, least, most).max()
        return Bounds(odds, float(low), float(high))


def _ratios(returns: np.ndarray, first: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Σ w G / Σ w with the weights `first` of the k smallest returns, for every k that has one."""

    def sums(first: np.ndarray, rest: np.ndarray) -> np.ndarray:
        before = np.concatenate([[0.0], np.cumsum(first)])
        after = np.concatenate([np.cumsum(rest[::-1])[::-1], [0.0]])
        return before + after

    return sums(first * returns, rest * returns) / sums(first, rest)
