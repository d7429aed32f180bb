"""Counts, lengths, returns and how episodes end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbve.data.dataset import Dataset

_BINS = 30


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
        executed_differs=executed_differs(dataset),
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


def executed_differs(dataset: Dataset) -> float | None:
    if dataset.executed is None:
        return None
    chosen, executed = np.asarray(dataset.action), np.asarray(dataset.executed)
    both = (chosen >= 0) & (executed >= 0)
    return float((chosen[both] != executed[both]).mean()) if both.any() else None
