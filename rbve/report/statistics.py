"""Mean over runs, its standard error and a percentile bootstrap interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
RESAMPLES = 10_000
SEED = 0
RUNAWAY = 1e30  # stands for values that left the range of floats

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """A measure over the runs that have a finite value of it."""

    n: int  # runs counted
    mean: float  # NaN without runs
    error: float | None  # standard error of the mean; None below two runs
    low: float | None  # bootstrap interval of the mean; None below two runs
    high: float | None
    median: float  # NaN without runs


def finite(values: Iterable[float | None]) -> Floats:
    return np.array([v for v in values if v is not None and math.isfinite(v)], dtype=np.float64)


def logarithm(values: Floats) -> Floats:
    """±log₁₀(1 + |x|): errors span a dozen powers of ten and may be 0; a runaway counts as 10³⁰."""
    known = np.nan_to_num(values, nan=RUNAWAY, posinf=RUNAWAY, neginf=-RUNAWAY)
    return np.sign(known) * np.log10(1 + np.minimum(np.abs(known), RUNAWAY))


def standard_error(values: Floats) -> float | None:
    """Sample standard deviation (n − 1) over √n."""
    if len(values) < 2:
        return None
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def bootstrap_interval(values: Floats, seed: int = SEED) -> tuple[float, float] | None:
    """Percentile interval of the mean over resamples with replacement; None below two values."""
    if len(values) < 2:
        return None
    # Members in a fixed order: the interval does not depend on the order files were found in.
    means = np.sort(values)[resample(len(values), seed)].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


@lru_cache(maxsize=32)
def resample(n: int, seed: int) -> NDArray[np.int64]:
    """Which of n values enter each resample: (RESAMPLES, n)."""
    return np.random.default_rng(seed).integers(n, size=(RESAMPLES, n))


def estimate(values: Iterable[float | None]) -> Estimate:
    """Non-finite and missing values are left out; `n` says how many remain."""
    kept = finite(values)
    if not len(kept):
        return Estimate(0, math.nan, None, None, None, math.nan)
    low, high = bootstrap_interval(kept) or (None, None)
    error = standard_error(kept)
    return Estimate(len(kept), float(kept.mean()), error, low, high, float(np.median(kept)))
