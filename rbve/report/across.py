"""Statistics across tasks (Agarwal et al., 2021), from a few runs of each.

Intervals resample runs within each task, never tasks: the tasks are what they are. All are seeded.
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


def interquartile_mean(values: Floats) -> float:
    """Mean without the lowest and the highest quarter, ⌊n/4⌋ values each."""
    ordered = np.sort(values)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def mean_of_tasks(scores: Sequence[Floats]) -> float:
    return float(np.mean([task.mean() for task in scores]))


def median_of_tasks(scores: Sequence[Floats]) -> float:
    """Median over tasks of each task's mean, as the paper's Atari table has it."""
    return float(np.median([task.mean() for task in scores]))


def pooled_iqm(scores: Sequence[Floats]) -> float:
    return interquartile_mean(np.concatenate(list(scores)))


def interval(
    scores: Scores, statistic: Callable[[Sequence[Floats]], float], seed: int = 0
) -> Interval:
    """A statistic of all tasks with its stratified percentile bootstrap interval."""
    # In a fixed order: the interval does not depend on the order runs were found in.
    tasks = [np.sort(np.asarray(scores[task], np.float64)) for task in sorted(scores)]
    if not tasks or not all(len(task) for task in tasks):
        raise ValueError("an interval needs at least one score for each task")
    found = [statistic(resampled) for resampled in resamples(tasks, seed)]
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    sizes = [len(task) for task in tasks]
    return Interval(statistic(tasks), float(low), float(high), sum(sizes), min(sizes))


def resamples(tasks: Sequence[Floats], seed: int) -> list[list[Floats]]:
    rng = np.random.default_rng(seed)
    chosen = [rng.integers(len(task), size=(RESAMPLES, len(task))) for task in tasks]
    return [
        [task[rows[k]] for task, rows in zip(tasks, chosen, strict=True)] for k in range(RESAMPLES)
    ]


def wins(ours: Floats, theirs: Floats) -> float:
    """Share of pairs in which ours is larger; equal counts half."""
    larger = ours[:, None] > theirs[None, :]
    equal = ours[:, None] == theirs[None, :]
    return float((larger + 0.5 * equal).mean())


def probability_of_improvement(ours: Scores, theirs: Scores, seed: int = 0) -> Interval:
    """P(a run of ours beats a run of theirs on the same task), mean over tasks they share."""
    shared = sorted(set(ours) & set(theirs))
    if not shared:
        raise ValueError("no task was run with both methods")
    both = {(task, side): side_of[task] for task in shared
            for side, side_of in (("ours", ours), ("theirs", theirs))}  # fmt: skip

    def share(tasks: Sequence[Floats]) -> float:
        # Sorted keys put a task's two methods side by side, ours first.
        return float(np.mean([wins(a, b) for a, b in zip(tasks[::2], tasks[1::2], strict=True)]))

    return interval(both, share, seed)


def performance_profile(scores: Scores, at: Floats, seed: int = 0) -> list[Interval]:
    """Share of runs that score above each threshold, every task counting alike."""
    tasks = [np.sort(np.asarray(scores[task], np.float64)) for task in sorted(scores)]

    def shares(drawn: Sequence[Floats]) -> Floats:
        return np.mean([(task[:, None] > at).mean(axis=0) for task in drawn], axis=0)

    found = np.array([shares(each) for each in resamples(tasks, seed)])
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    n, fewest = sum(map(len, tasks)), min(map(len, tasks))
    return [
        Interval(float(v), float(a), float(b), n, fewest)
        for v, a, b in zip(shares(tasks), low, high, strict=True)
    ]
