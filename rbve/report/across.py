"""Statistics across tasks (Agarwal et al., 2021), from a few datasets of each.

A task is one kind of data; its datasets are independent, the runs on one dataset are not. The mean
over tasks has a Student interval (Welch: each task with its own spread). For other statistics
datasets are resampled within each task, then runs within each dataset, never tasks: the tasks are
what they are. All are seeded. A statistic takes each task's datasets along the last axis, so that
all resamples are one call.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rbve.report.statistics import LEVEL, Floats, student_quantile

RESAMPLES = 2_000

# task -> of each dataset its score, or the scores of its runs
Scores = Mapping[Any, Floats | Sequence[Floats]]
_Task = list[Floats]  # of each dataset the scores of its runs


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
    tasks = _in_order(scores)
    low, high = np.quantile(statistic(resamples(tasks, seed)), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    sizes = [len(task) for task in tasks]
    value = float(statistic([_averages(task) for task in tasks]))
    return Interval(value, float(low), float(high), sum(sizes), min(sizes))


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
    found = []
    for task in tasks:
        drawn = rng.integers(len(task), size=(RESAMPLES, len(task)))
        lines = _averages(task)[drawn]
        for index, runs in enumerate(task):
            if (n := len(runs)) > 1:
                own = drawn == index
                lines[own] = runs[rng.integers(n, size=(int(own.sum()), n))].mean(-1)
        found.append(lines)
    return found


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
    tasks = _in_order(scores)

    def shares(drawn: Sequence[Floats]) -> Floats:
        above = [(task[..., None] > at).mean(axis=-2) for task in drawn]
        return np.asarray(np.mean(above, axis=0))

    low, high = np.quantile(
        shares(resamples(tasks, seed)), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0
    )
    n, fewest = sum(map(len, tasks)), min(map(len, tasks))
    return [
        Interval(float(v), float(a), float(b), n, fewest)
        for v, a, b in zip(shares([_averages(task) for task in tasks]), low, high, strict=True)
    ]
