"""Intervals of a mean over episodes, from influence values: one place for all estimators."""

import math
from collections.abc import Callable

import numpy as np

LEVEL = 0.9  # probability that an interval holds the value
_RESAMPLES = 2000
_DRAWN = 1 << 20  # episodes drawn at a time
Interval = tuple[float, float]


def student(values: np.ndarray, level: float = LEVEL) -> Interval:
    """mean ± t · standard error: right for many episodes without a heavy tail."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return -math.inf, math.inf
    quantile = float(stdtrit(len(values) - 1, (1 + level) / 2))
    reach = quantile * float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - reach, float(values.mean()) + reach


def bootstrap(values: np.ndarray, level: float = LEVEL, seed: int = 0) -> Interval:
    """Quantiles of the means of episodes drawn again with replacement."""
    if len(values) < 2:
        return -math.inf, math.inf
    rng = np.random.default_rng([seed, 20])
    at_once = max(1, _DRAWN // len(values))
    means = np.concatenate(
        [
            values[rng.integers(0, len(values), (min(at_once, _RESAMPLES - k), len(values)))].mean(
                1
            )
            for k in range(0, _RESAMPLES, at_once)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bernstein(values: np.ndarray, level: float = LEVEL) -> Interval:
    """Empirical Bernstein bound (Maurer and Pontil, 2009): wide, and certain at any size, if no
    value lies outside the range of those seen.

        mean ± ( √(2 σ̂² ln(4/δ) / n) + 7 R ln(4/δ) / (3 (n − 1)) ),    δ = 1 − level
    """
    count = len(values)
    if count < 2:
        return -math.inf, math.inf
    log = math.log(4 / (1 - level))
    variance, span = float(values.var(ddof=1)), float(np.ptp(values))
    reach = math.sqrt(2 * variance * log / count) + 7 * span * log / (3 * (count - 1))
    return float(values.mean()) - reach, float(values.mean()) + reach


METHODS: dict[str, Callable[..., Interval]] = {
    "student": student, "bootstrap": bootstrap, "bernstein": bernstein,
}  # fmt: skip
