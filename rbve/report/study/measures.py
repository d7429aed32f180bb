"""The measures of a study: their names, their axes, and their centre over datasets."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rbve.report import statistics
from rbve.report.across import Scores, interval, median_of_tasks
from rbve.report.chart import Point, Scale
from rbve.report.statistics import Floats
from rbve.report.table import number

NAMES = {
    "normalised_return": "normalised score",
    "return": "return",
    "overestimation": "over-estimation error",
    "start_overestimation": "over-estimation error at the first state",
    "value_error": "value error, Q − G",
    "action_gap": "action gap",
}
# They span a dozen powers of ten: centre and interval are taken of ±log₁₀(1 + |x|), turned back.
FOLDED = {"overestimation", "start_overestimation", "value_error"}
FOLDED_WORDS = "mean over datasets of log₁₀(1 + x), turned back"
SIGNED_WORDS = "mean over datasets of ±log₁₀(1 + |x|), turned back"
MEAN_WORDS = "mean over datasets"
SCORE_WORDS = "0 = random, 100 = the online agent's best snapshot"


class Centre(NamedTuple):
    value: float  # NaN without a finite value
    low: float | None  # 95% interval over datasets; None below two
    high: float | None
    n: int  # datasets with a finite value
    missing: int = 0  # datasets without

    def point(self, x: float | str, note: str = "") -> Point:
        words = [note] if note else []
        if self.missing:
            words.append(f"{self.missing} of {self.n + self.missing} not finite, left out")
        return Point(x, self.value, self.low, self.high, self.n, "; ".join(words))

    @property
    def text(self) -> str:
        if self.low is None or self.high is None:
            return number(self.value)
        return f"{number(self.value)} [{number(self.low)}, {number(self.high)}]"


def fold(values: Floats) -> Floats:
    return np.sign(values) * np.log10(1 + np.abs(values))


def unfold(value: float) -> float:
    return math.copysign(10 ** abs(value) - 1, value)


def unfolded(found: Centre) -> Centre:
    ends = [None if end is None else unfold(end) for end in (found.low, found.high)]
    return found._replace(value=unfold(found.value), low=ends[0], high=ends[1])


def centre(values: Iterable[float], measure: str) -> Centre:
    """Mean over datasets with its bootstrap interval, on the measure's own scale."""
    given = list(values)
    kept = statistics.finite(given)
    found = statistics.estimate(fold(kept) if measure in FOLDED else kept)
    known = Centre(found.mean, found.low, found.high, found.n, len(given) - found.n)
    return unfolded(known) if measure in FOLDED else known


def median_over(tasks: Scores, measure: str) -> Centre:
    """Median over tasks of their centres, datasets resampled within each task."""
    known = {name: statistics.finite(values) for name, values in tasks.items()}
    missing = sum(len(tasks[name]) - len(values) for name, values in known.items())
    kept = {name: fold(v) if measure in FOLDED else v for name, v in known.items() if len(v)}
    if not kept:
        return Centre(math.nan, None, None, 0, missing)
    found = interval(kept, median_of_tasks)
    result = Centre(found.value, found.low, found.high, found.n, missing)
    return unfolded(result) if measure in FOLDED else result


def axis(measure: str) -> Scale:
    return "symlog" if measure in FOLDED else "linear"


def words(measure: str) -> str:
    """How a figure's centre is to be read."""
    if measure in FOLDED:
        return SIGNED_WORDS if measure == "value_error" else FOLDED_WORDS
    return f"{MEAN_WORDS} ({SCORE_WORDS})" if measure == "normalised_return" else MEAN_WORDS


def n_words(counts: Iterable[int]) -> str:
    """'n = 5 datasets', or from how few to how many."""
    known = sorted(set(counts)) or [0]
    ends = dict.fromkeys((known[0], known[-1]))
    return f"n = {' to '.join(map(str, ends))} datasets"
