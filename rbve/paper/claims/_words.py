"""The words claims are made of: kinds of data, quantities, thresholds."""

import numpy as np

from rbve.paper.finals import Problem
from rbve.paper.judging._effects import STANDARDISED, Pick, Quantity, Where
from rbve.report.statistics import Floats, logarithm

BASELINES = ("DDQN", "CQL", "REM", "BCQ")
_LAMBDAS = (0.005, 0.05, 0.5, 5.0)
EXPERT = 90.0  # normalised score that 'almost reaches' the online agent's best
CLOSE = 10.0  # points of normalised score that still count as 'similar'
ORDERS = 2.0  # log₁₀: 'orders of magnitude' is a factor of 100 or more
LATER = "a row added after the first rows were read"
ALL_SIX = "all six problems (10% of the episodes)"


def magnitude(error: Floats) -> Floats:
    """Values below the truth are as wrong as those above it."""
    return np.abs(logarithm(error))


_TWICE = float(np.log10(2))  # errors that differ by less than a factor of two are alike
OVERESTIMATION = Quantity("overestimation", logarithm, _TWICE)
VALUE_ERROR = Quantity("value_error", magnitude, _TWICE)
ACTION_GAP = Quantity("action_gap", tolerance=0.05)  # the margin ν


def plain(problem: Problem) -> bool:
    """All episodes, whatever their return, and the actions the agent chose."""
    return problem.side == "all" and problem.action == "chosen"


def standard(problem: Problem) -> bool:
    """What an agent collected while it learned; how much of it is the experiment's matter."""
    return problem.epsilon is None and plain(problem)


def on(env: str, noise: float | None = None) -> Where:
    return lambda p: standard(p) and p.env == env and (noise is None or p.noise == noise)


def quiet(problem: Problem) -> bool:
    return standard(problem) and problem.noise == 0


def noisy(problem: Problem) -> bool:
    return standard(problem) and problem.noise == 0.25


def share(low: float, high: float) -> Where:
    return lambda p: quiet(p) and low <= p.keep <= high


SCARCE, PLENTY = share(0, 0.05), share(0.5, 1)  # shares of the episodes: 'low' and 'high data'
ANY_SHARE = share(0, 1)


def side(name: str) -> Where:
    return lambda p: p.side == name and p.epsilon is None


def expert(epsilon: float) -> Where:
    return lambda p: p.epsilon == epsilon and not p.script and plain(p)


def along(algorithm: str) -> dict[str, Pick]:
    return {f"λ {lam:g}": Pick(algorithm, {**STANDARDISED, "lam": lam}) for lam in _LAMBDAS}


def called(who: str, *methods: str) -> list[str]:
    """Names by which one claim compares several methods with the same others."""
    return [f"{name} ({who})" for name in methods]
