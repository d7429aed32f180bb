"""Counts, lengths, returns and how episodes end, and whether that can be true."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rbve.audit._reading import Sample
from rbve.audit.verdict import Finding, counted
from rbve.data.dataset import Dataset

_BINS = 30
_FEW_ROWS = 100  # fewer decisions than a batch holds
_SHORTEST_LIMIT = 5  # steps; episodes shorter than that end for reasons of their own
_PILE = 0.05  # share of episodes at the longest length that makes it a limit
_SPIKE = 4.0  # times as many as at the lengths just below
_CLOCK = 0.9  # R² of the step from the observation: the state then knows the time
_CLOCK_ROWS = 5_000  # decisions it is fitted on
_LIMIT_EPISODES = 5  # episodes that show a limit
_LIMITS = 3  # different lengths of truncated episodes that still are limits
_EXECUTED = 0.5  # share of actions replaced: more than the noisiest data of the paper


@dataclass(frozen=True)
class Spread:
    mean: float
    deviation: float
    low: float
    q25: float
    median: float
    q75: float
    high: float


@dataclass(frozen=True)
class Histogram:
    edges: list[float]
    counts: list[int]


@dataclass(frozen=True)
class Counts:
    episodes: int
    transitions: int
    terminated: int
    truncated: int
    fragments: int
    without_final: int  # episodes that lack their final observation
    length: Spread
    lengths: Histogram
    returns_unknown: int  # fragments of which nobody said what their episode returned
    returns: Spread | None  # of the others; None where there are none
    return_histogram: Histogram | None
    above_mean: float  # share of episodes filtered BC keeps
    executed_differs: float | None  # share of decisions; None without executed actions


def measure(dataset: Dataset) -> Counts:
    returns = np.asarray(dataset.episode_return, np.float64)[dataset.returns_known]
    some = len(returns) > 0
    return Counts(
        episodes=dataset.num_episodes,
        transitions=dataset.num_transitions,
        terminated=int(dataset.terminated.sum()),
        truncated=int((~dataset.terminated).sum()),
        fragments=int((~dataset.complete).sum()),
        without_final=int((~dataset.finals_known).sum()),
        length=spread(dataset.lengths),
        lengths=histogram(dataset.lengths),
        returns_unknown=dataset.num_episodes - len(returns),
        returns=spread(returns) if some else None,
        return_histogram=histogram(returns) if some else None,
        above_mean=float((returns > returns.mean()).mean()) if some else 0.0,
        executed_differs=_executed_differs(dataset),
    )


def spread(values: np.ndarray) -> Spread:
    values = np.asarray(values, np.float64)
    quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    return Spread(float(values.mean()), float(values.std()), *map(float, quantiles))


def histogram(values: np.ndarray) -> Histogram:
    """Whole numbers get bins of whole width, so that no bin holds more of them than its share."""
    values = np.asarray(values, np.float64)
    low, high = float(values.min()), float(values.max())
    if low == high:
        edges = np.array([low - 0.5, low + 0.5])
    elif high - low < 1e9 and (values == np.round(values)).all():
        width = max(1, int(np.ceil((high - low + 1) / _BINS)))
        edges = np.arange(low - 0.5, high + width, width)
    else:
        edges = np.linspace(low, high, _BINS + 1)
    counts, edges = np.histogram(values, edges)
    return Histogram(edges.tolist(), counts.tolist())


def _executed_differs(dataset: Dataset) -> float | None:
    if dataset.executed is None:
        return None
    chosen, executed = np.asarray(dataset.action), np.asarray(dataset.executed)
    both = (chosen >= 0) & (executed >= 0)
    return float((chosen[both] != executed[both]).mean()) if both.any() else None


@dataclass(frozen=True)
class Ends:
    limit: int | None  # length at which episodes pile up
    at_limit: int  # episodes of that length
    at_limit_terminated: int
    clock: float  # R² of the step from the observation
    cut: int  # truncated episodes that stop before any limit
    first_cut: int | None  # index of the first


def measure_ends(dataset: Dataset, sample: Sample) -> Ends:
    lengths = dataset.lengths
    limit = limit_of(lengths)
    at_limit = lengths == (-1 if limit is None else limit)
    truncated = ~dataset.terminated & dataset.complete
    limits = np.unique(lengths[truncated])
    cut = truncated & (lengths < lengths.max())
    # One length may be chance at the end of a log; two or three are limits of different tasks.
    if 1 < len(limits) <= _LIMITS and cut.sum() >= _LIMIT_EPISODES:
        cut[:] = False
    return Ends(
        limit=limit,
        at_limit=int(at_limit.sum()),
        at_limit_terminated=int((at_limit & dataset.terminated).sum()),
        clock=clock(dataset, sample),
        cut=int(cut.sum()),
        first_cut=int(np.argmax(cut)) if cut.any() else None,
    )


def limit_of(lengths: np.ndarray) -> int | None:
    """The longest length, if episodes pile up there."""
    longest = int(lengths.max(initial=0))
    if longest < _SHORTEST_LIMIT:
        return None
    there = int((lengths == longest).sum())
    below = int(((lengths < longest) & (lengths >= longest / 2)).sum())
    usual = below / max(1, longest - longest // 2)
    enough = there >= max(_LIMIT_EPISODES, _PILE * len(lengths))
    return longest if enough and there > _SPIKE * usual else None


def clock(dataset: Dataset, sample: Sample) -> float:
    """R² of a linear fit of the step to the observation."""
    every = max(1, len(sample.rows) // _CLOCK_ROWS)
    rows, states = sample.rows[::every], sample.states[::every]
    episode = np.searchsorted(dataset.offsets, rows, side="right") - 1
    step = (rows - dataset.offsets[episode]).astype(np.float64)
    if len(step) == 0 or step.std() == 0:
        return 0.0
    numbers = np.column_stack([np.ones(len(step)), states])
    solution, *_ = np.linalg.lstsq(numbers, step, rcond=None)
    return float(1 - np.var(step - numbers @ solution) / np.var(step))


def findings(dataset: Dataset, counts: Counts, ends: Ends) -> Iterator[Finding]:
    if counts.transitions < _FEW_ROWS:
        yield Finding(
            "very little data",
            f"{counted(counts.transitions, 'decision')} in {counted(counts.episodes, 'episode')}",
            "a network learns such a log by heart",
            "gather more episodes before believing any result",
        )
    if ends.first_cut is not None:
        yield _cut_episodes(int(dataset.lengths[ends.first_cut]), counts, ends)
    if ends.limit is not None and ends.at_limit_terminated == ends.at_limit and ends.clock < _CLOCK:
        yield Finding(
            "time limit marked as termination",
            f"{ends.at_limit:,} of {counts.episodes:,} episodes end at exactly {ends.limit} steps, "
            f"the longest there is, all marked terminated, and the observation shows no clock "
            f"(R² {max(ends.clock, 0):.2f})",
            "states near the limit then count as worth nothing for no reason they show",
            "mark those ends as truncated (`--ends truncated` where no flag says it); if the task "
            "truly ends there, leave it, or add the time left to the observation",
        )
    if counts.returns_unknown:
        yield Finding(
            "returns unknown",
            f"{counts.returns_unknown:,} of {counts.episodes:,} episodes are pieces of longer "
            "ones, such as lone transitions, without the return of the whole",
            "there is no V̂ to go by: R-BVE and R-DQN weigh such rows by 1, filtered BC and MC "
            "leave them out",
            "convert again with `--episode-return NAME`, or with `--episode NAME` so that rewards "
            "add up along episodes",
        )
    if counts.returns and counts.returns.deviation == 0 and counts.episodes > 1:
        yield Finding(
            "returns do not vary",
            f"all {counts.episodes - counts.returns_unknown:,} episodes return "
            f"{counts.returns.mean:g}",
            "no episode is better than another; the ranking weight follows the clock alone",
            "add episodes that do better or worse, or check the reward column",
        )
    if counts.executed_differs is not None and counts.executed_differs > _EXECUTED:
        yield Finding(
            "executed actions differ",
            f"the action executed is not the one chosen in {counts.executed_differs:.0%} of rows",
            "the log then says little about what the chosen actions do",
            "check that the column is not shifted; or train with `--action executed`",
        )


def _cut_episodes(steps: int, counts: Counts, ends: Ends) -> Finding:
    if ends.cut == 1 and ends.first_cut == counts.episodes - 1:
        return Finding(
            "trailing partial episode",
            f"the last episode ({ends.first_cut}) stops after {counted(steps, 'step')} without an "
            "end, as no other does",
            "its V̂ lacks the rewards that came after the recording stopped",
            "take it out of the log, or record on until it ends",
        )
    return Finding(
        "episodes cut short",
        f"{ends.cut:,} of {counts.episodes:,} episodes are truncated at lengths that are no common "
        f"limit, such as episode {ends.first_cut} after {counted(steps, 'step')}",
        "their V̂ lacks the rewards that came after the cut",
        "if these ends are real, read the log with `--ends terminated`; else take those episodes "
        "out of it, or know that their V̂ is too low",
    )
