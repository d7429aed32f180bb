"""The measures of a study: their names, their axes, and their centre over datasets."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rbve.evaluation.metric import registered
from rbve.report import statistics
from rbve.report.chart import Point
from rbve.report.statistics import Floats, interval, logarithm, median_of_tasks
from rbve.report.table import number

_NAMES = {name: each.label for name, each in registered().items()}
# They span a dozen powers of ten: centre and interval are taken of ±log₁₀(1 + |x|), turned back.
FOLDED = {name for name, each in registered().items() if each.logarithmic}
# Nor are their intervals below 0.
_NEVER_BELOW_0 = {name for name, each in registered().items() if each.nonnegative}
SCORE_WORDS = "0 = random, 100 = the online agent's best snapshot"


class _Centre(NamedTuple):
    """Of a measure over datasets."""

    value: float  # NaN without a finite value
    low: float | None  # 95% interval over datasets; None below two
    high: float | None
    n: int  # datasets counted
    runaway: int = 0  # datasets whose value is not finite
    counted: bool = False  # as RUNAWAY; else left out

    def point(self, x: float | str) -> Point:
        words = ""
        if self.runaway:
            known = self.n if self.counted else self.n + self.runaway
            how = "counted as 10³⁰" if self.counted else "left out"
            words = f"{self.runaway} of {known} not finite, {how}"
        return Point(x, self.value, self.low, self.high, self.n, words)

    @property
    def text(self) -> str:
        if self.low is None or self.high is None:
            return number(self.value)
        return f"{number(self.value)} [{number(self.low)}, {number(self.high)}]"


def centre(values: Iterable[float], measure: str) -> _Centre:
    """Mean over datasets with its Student interval, on the measure's own scale."""
    known = np.array(list(values), np.float64)
    mean = statistics.estimate(logarithm(known) if measure in FOLDED else known)
    low = mean.low
    if low is not None and measure in _NEVER_BELOW_0:
        low = max(low, 0.0)
    return _centre(measure, known, mean.mean, low, mean.high, mean.n)


def median_over(tasks: Mapping[str, Floats], measure: str) -> _Centre:
    """Median over tasks of their centres; interval: datasets resampled within each task."""
    scaled = logarithm if measure in FOLDED else statistics.finite
    known = {name: scaled(values) for name, values in tasks.items()}
    kept = {name: values for name, values in known.items() if len(values)}
    every = np.concatenate(list(tasks.values()))
    if not kept:
        return _centre(measure, every, math.nan, None, None, 0)
    return _centre(measure, every, *interval(kept, median_of_tasks)[:4])


def _centre(
    measure: str, values: Floats, mean: float, low: float | None, high: float | None, n: int
) -> _Centre:
    """Turned back from the log scale, where the measure is on it."""
    folded, runaway = measure in FOLDED, int((~np.isfinite(values)).sum())
    if folded:
        mean = math.copysign(10 ** abs(mean) - 1, mean)
        low, high = (x if x is None else math.copysign(10 ** abs(x) - 1, x) for x in (low, high))
    return _Centre(mean, low, high, n, runaway, folded)


def axis(measure: str) -> dict[str, Any]:
    """Of a chart: its label and scale."""
    scale = "symlog" if measure in FOLDED else "linear"
    return {"y_label": _NAMES.get(measure, measure), "y_scale": scale}


def title(measure: str) -> str:
    name = _NAMES.get(measure, measure)
    return f"{name[0].upper()}{name[1:]}"


def words(measure: str) -> str:
    """How a figure's centre is to be read."""
    if measure in FOLDED:
        scale = "±log₁₀(1 + |x|)" if measure == "value_error" else "log₁₀(1 + x)"
        return f"mean over datasets of {scale}, turned back"
    scale = f" ({SCORE_WORDS})" if measure == "normalised_return" else ""
    return f"mean over datasets{scale}"


def span(counts: Iterable[int]) -> str:
    """'5', or from how few to how many."""
    known = list(counts) or [0]
    return " to ".join(f"{end:,}" for end in dict.fromkeys((min(known), max(known))))


def n_words(counts: Iterable[int]) -> str:
    """'n = 5 datasets', or from how few to how many."""
    words = span(counts)
    return f"n = {words} {'dataset' if words.split()[-1] == '1' else 'datasets'}"
