"""Means over runs that share datasets, their standard errors and Student intervals.

Runs on one dataset are not independent: they are averaged first, and the interval is that of the
datasets' means. Runs that all share one dataset have an interval over runs, and say so.
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
RUNAWAY = 1e30  # stands for values that left the range of floats

Floats = NDArray[np.float64]
_Unit = Literal["datasets", "runs"]


class Estimate(NamedTuple):
    """A measure over the runs that have a finite value of it."""

    n: int  # runs counted
    mean: float  # over datasets, of the mean of the runs on each; NaN without runs
    error: float | None  # standard error of the mean; None where there is no interval
    low: float | None  # Student interval of the mean; None below two runs
    high: float | None
    median: float  # over runs; NaN without any
    datasets: int  # that the runs counted share
    over: _Unit | None  # what error and interval are over: runs, where there is one dataset


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


def student_interval(values: Floats) -> tuple[float, float] | None:
    """mean ± t·standard error, of independent values; None below two."""
    error = standard_error(values)
    if error is None:
        return None
    mean, reach = float(values.mean()), student_quantile(len(values) - 1) * error
    return mean - reach, mean + reach


@lru_cache
def student_quantile(freedom: int) -> float:
    """t with P(|T| ≤ t) = LEVEL, T of Student's distribution with so many degrees of freedom."""
    if freedom < 1:
        raise ValueError(f"Student's distribution needs a degree of freedom; got {freedom}")
    low, high = 0.0, math.pi / 2
    while (angle := (low + high) / 2) not in (low, high):
        low, high = (angle, high) if within(angle, freedom) < LEVEL else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def within(angle: float, freedom: int) -> float:
    """P(|T| ≤ √freedom · tan angle), exactly (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
    odd = freedom % 2
    powers = np.arange(2 + odd, freedom, 2)  # the k-th term is the one before · (k−1)/k · cos²
    ratios = (powers - 1) / powers * math.cos(angle) ** 2
    first = math.sin(angle) * (math.cos(angle) if odd else 1.0)
    terms = first * (1 + np.cumprod(ratios).sum()) if freedom > 1 else 0.0
    return float(2 / math.pi * (angle + terms) if odd else terms)


def estimate(
    values: Iterable[float | None], datasets: Sequence[Hashable] | None = None
) -> Estimate:
    """`datasets` says which one each value is of; without it, each value is a dataset's own.

    Non-finite and missing values are left out; `n` says how many remain.
    """
    given = list(values)
    groups: dict[Hashable, list[float]] = {}
    for value, dataset in zip(given, datasets or range(len(given)), strict=True):
        if value is not None and math.isfinite(value):
            groups.setdefault(dataset, []).append(value)
    kept = finite(given)
    if not len(kept):
        return Estimate(0, math.nan, None, None, None, math.nan, 0, None)
    # In a fixed order: sums do not depend on the order files were found in.
    units = np.sort([np.sort(group).mean() for group in groups.values()])
    over: _Unit | None = "datasets" if len(units) > 1 else "runs" if len(kept) > 1 else None
    units = units if over == "datasets" else np.sort(kept)
    low, high = student_interval(units) or (None, None)
    return Estimate(
        n=len(kept),
        mean=float(units.mean()),
        error=standard_error(units),
        low=low,
        high=high,
        median=float(np.median(kept)),
        datasets=len(groups),
        over=over,
    )
