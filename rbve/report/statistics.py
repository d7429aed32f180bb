"""Means over runs that share datasets, statistics across tasks, and their intervals.

Runs on one dataset are not independent: they are averaged first, and the interval is that of the
datasets' means. Runs that all share one dataset have an interval over runs, and say so.

Across tasks (Agarwal et al., 2021): a task is one kind of data, with a few datasets. The mean over
tasks has a Student interval (Welch: each task with its own spread). For other statistics datasets
are resampled within each task, then runs within each dataset, never tasks: the tasks are what they
are. All are seeded. A statistic takes each task's datasets along the last axis, so that all
resamples are one call.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

_LEVEL = 0.95
_RESAMPLES = 2_000
_RUNAWAY = 1e30  # stands for values that left the range of floats

Floats = NDArray[np.float64]
_Unit = Literal["datasets", "runs"]
# task -> of each dataset its score, or the scores of its runs
Scores = Mapping[Any, Floats | Sequence[Floats]]
_Task = list[Floats]  # of each dataset the scores of its runs


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
    known = np.nan_to_num(values, nan=_RUNAWAY, posinf=_RUNAWAY, neginf=-_RUNAWAY)
    return np.sign(known) * np.log10(1 + np.minimum(np.abs(known), _RUNAWAY))


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


def student_quantile(freedom: int) -> float:
    """t with P(|T| ≤ t) = LEVEL, T of Student's distribution with so many degrees of freedom."""
    if freedom < 1:
        raise ValueError(f"Student's distribution needs a degree of freedom; got {freedom}")
    return float(stdtrit(freedom, (1 + _LEVEL) / 2))


def estimate(
    values: Iterable[float | None], datasets: Sequence[Hashable] | None = None
) -> Estimate:
    """`datasets` says which one each value is of; without it, each value is a dataset's own.

    Non-finite and missing values are left out; `n` says how many remain.
    """
    every = list(values)
    groups: dict[Hashable, list[float]] = {}
    for value, dataset in zip(every, datasets or range(len(every)), strict=True):
        if value is not None and math.isfinite(value):
            groups.setdefault(dataset, []).append(value)
    kept = finite(every)
    if not len(kept):
        return Estimate(0, math.nan, None, None, None, math.nan, 0, None)
    # In a fixed order: sums do not depend on the order files were found in.
    units = np.sort([np.sort(group).mean() for group in groups.values()])
    over: _Unit | None = "datasets" if len(units) > 1 else "runs" if len(kept) > 1 else None
    units = units if over == "datasets" else np.sort(kept)
    low, high = student_interval(units) or (None, None)
    mean, median = float(units.mean()), float(np.median(kept))
    return Estimate(len(kept), mean, standard_error(units), low, high, median, len(groups), over)


class Interval(NamedTuple):
    value: float
    low: float  # NaN where nothing is known of the spread
    high: float
    n: int  # datasets behind it
    fewest: int = 0  # datasets behind its thinnest task


def interquartile_mean(values: Floats) -> Any:
    """Mean without the lowest and the highest quarter, ⌊n/4⌋ values each."""
    ordered = np.sort(values, axis=-1)
    cut = ordered.shape[-1] // 4
    return ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)


def mean_of_tasks(scores: Sequence[Floats]) -> Any:
    return np.mean([task.mean(axis=-1) for task in scores], axis=0)


def median_of_tasks(scores: Sequence[Floats]) -> Any:
    """Median over tasks of each task's mean, as the paper's Atari table has it."""
    return np.median([task.mean(axis=-1) for task in scores], axis=0)


def pooled_iqm(scores: Sequence[Floats]) -> Any:
    return interquartile_mean(np.concatenate(list(scores), axis=-1))


def mean_interval(scores: Scores) -> Interval:
    """Mean over tasks of the mean over their datasets, with its Student interval (Welch).

    Of a task with a single dataset nothing is known of the spread: no interval.
    """
    means = [_averages(task) for task in _in_order(scores)]
    value, sizes = float(mean_of_tasks(means)), [len(each) for each in means]
    if min(sizes) < 2:
        return Interval(value, math.nan, math.nan, sum(sizes), min(sizes))
    parts = [float(each.var(ddof=1)) / len(each) for each in means]
    # Whole degrees of freedom: rounding down makes the interval a little wider.
    down = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    freedom = int(sum(parts) ** 2 / down + 1e-9) if down else 1
    reach = student_quantile(freedom) * math.sqrt(sum(parts)) / len(means)
    return Interval(value, value - reach, value + reach, sum(sizes), min(sizes))


def interval(
    scores: Scores, statistic: Callable[[Sequence[Floats]], Any], seed: int = 0
) -> Interval:
    """A statistic of all tasks with its percentile bootstrap interval."""
    return _intervals(scores, statistic, seed)[0]


def _intervals(
    scores: Scores, statistic: Callable[[Sequence[Floats]], Any], seed: int
) -> list[Interval]:
    """Those of a statistic of one value, or of several along its last axis."""
    tasks = _in_order(scores)
    ends = [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]
    low, high = np.quantile(statistic(resamples(tasks, seed)), ends, axis=0)
    value, sizes = statistic([_averages(task) for task in tasks]), [len(task) for task in tasks]
    triples = zip(*(np.atleast_1d(each).tolist() for each in (value, low, high)), strict=True)
    return [Interval(v, a, b, sum(sizes), min(sizes)) for v, a, b in triples]


def _in_order(scores: Scores) -> list[_Task]:
    """Tasks, their datasets and the runs of those in a fixed order, not as files were found."""
    tasks = [
        sorted((np.sort(np.atleast_1d(np.asarray(d, np.float64))) for d in scores[name]), key=list)
        for name in sorted(scores)
    ]
    if not tasks or not all(len(task) and all(map(len, task)) for task in tasks):
        raise ValueError("an interval needs at least one score for each task")
    return tasks


def _averages(task: _Task) -> Floats:
    return np.array([runs.mean() for runs in task])


def resamples(tasks: Sequence[_Task], seed: int) -> list[Floats]:
    """Of each task, RESAMPLES lines of as many datasets as it has: means of resampled runs."""
    rng = np.random.default_rng(seed)
    result = []
    for task in tasks:
        drawn = rng.integers(len(task), size=(_RESAMPLES, len(task)))
        lines = _averages(task)[drawn]
        for index, runs in enumerate(task):
            if (n := len(runs)) > 1:
                own = drawn == index
                lines[own] = runs[rng.integers(n, size=(int(own.sum()), n))].mean(-1)
        result.append(lines)
    return result


def wins(ours: Floats, theirs: Floats) -> Any:
    """Share of pairs in which ours is larger; equal counts half."""
    larger = ours[..., :, None] > theirs[..., None, :]
    equal = ours[..., :, None] == theirs[..., None, :]
    return (larger + 0.5 * equal).mean(axis=(-2, -1))


def probability_of_improvement(ours: Scores, theirs: Scores, seed: int = 0) -> Interval:
    """P(ours beats theirs on datasets of the same task), mean over tasks they share."""
    shared = sorted(set(ours) & set(theirs))
    if not shared:
        raise ValueError("no task was run with both methods")
    both = {(task, side): side_of[task] for task in shared
            for side, side_of in (("ours", ours), ("theirs", theirs))}  # fmt: skip

    def share(tasks: Sequence[Floats]) -> Any:
        # Sorted keys put a task's two methods side by side, ours first.
        pairs = zip(tasks[::2], tasks[1::2], strict=True)
        return np.mean([wins(a, b) for a, b in pairs], axis=0)

    return interval(both, share, seed)


def performance_profile(scores: Scores, at: Floats, seed: int = 0) -> list[Interval]:
    """Share of datasets that score above each threshold, every task counting alike."""

    def shares(tasks: Sequence[Floats]) -> Any:
        return np.mean([(task[..., None] > at).mean(axis=-2) for task in tasks], axis=0)

    return _intervals(scores, shares, seed)
