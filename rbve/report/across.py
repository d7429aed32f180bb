"""Statistics across tasks (Agarwal et al., 2021), from a few runs of each.

Intervals resample runs within each task, never tasks: the tasks are what they are. All are seeded.
A statistic takes each task's runs along the last axis, so that all resamples are one call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rbve.report.statistics import LEVEL, Floats

RESAMPLES = 2_000

Scores = Mapping[Any, Floats]  # task -> one score per run


class Interval(NamedTuple):
    value: float
    low: float
    high: float
    n: int  # runs behind it
    fewest: int = 0  # runs behind its thinnest task


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


def interval(
    scores: Scores, statistic: Callable[[Sequence[Floats]], Any], seed: int = 0
) -> Interval:
    """A statistic of all tasks with its stratified percentile bootstrap interval."""
    # In a fixed order: the interval does not depend on the order runs were found in.
    tasks = [np.sort(np.asarray(scores[task], np.float64)) for task in sorted(scores)]
    if not tasks or not all(len(task) for task in tasks):
        raise ValueError("an interval needs at least one score for each task")
    low, high = np.quantile(statistic(resamples(tasks, seed)), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    sizes = [len(task) for task in tasks]
    return Interval(float(statistic(tasks)), float(low), float(high), sum(sizes), min(sizes))


def resamples(tasks: Sequence[Floats], seed: int) -> list[Floats]:
    """Of each task, RESAMPLES lines of as many runs as it has."""
    rng = np.random.default_rng(seed)
    return [task[rng.integers(len(task), size=(RESAMPLES, len(task)))] for task in tasks]


def wins(ours: Floats, theirs: Floats) -> Any:
    """Share of pairs in which ours is larger; equal counts half."""
    larger = ours[..., :, None] > theirs[..., None, :]
    equal = ours[..., :, None] == theirs[..., None, :]
    return (larger + 0.5 * equal).mean(axis=(-2, -1))


def probability_of_improvement(ours: Scores, theirs: Scores, seed: int = 0) -> Interval:
    """P(a run of ours beats a run of theirs on the same task), mean over tasks they share."""
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
    """Share of runs that score above each threshold, every task counting alike."""
    tasks = [np.sort(np.asarray(scores[task], np.float64)) for task in sorted(scores)]

    def shares(drawn: Sequence[Floats]) -> Floats:
        above = [(task[..., None] > at).mean(axis=-2) for task in drawn]
        return np.asarray(np.mean(above, axis=0))

    low, high = np.quantile(
        shares(resamples(tasks, seed)), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0
    )
    n, fewest = sum(map(len, tasks)), min(map(len, tasks))
    return [
        Interval(float(v), float(a), float(b), n, fewest)
        for v, a, b in zip(shares(tasks), low, high, strict=True)
    ]
