"""Contestants measured side by side: one round of each in turn, compared round by round.

On a shared machine absolute rates drift by the minute; the ratio of two neighbouring rounds drifts
far less. Wall time is what a user waits for. CPU time leaves out what other programs took.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Lap(NamedTuple):
    wall: float  # seconds
    cpu: float  # seconds, over all threads of the process that did the work


class Figure(NamedTuple):
    """One line of the results."""

    benchmark: str
    name: str
    value: float
    unit: str
    note: str = ""


def lap(work: Callable[[], object]) -> Lap:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Lap(time.perf_counter() - wall, time.process_time() - cpu)


def interleave(contestants: Mapping[str, Callable[[], Lap]], rounds: int) -> dict[str, list[Lap]]:
    """Laps of each, A B C A B C ...; a contestant's callable does one round and times itself."""
    laps: dict[str, list[Lap]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            laps[name].append(run())
    return laps


def best(laps: Sequence[Lap]) -> float:
    return min(each.wall for each in laps)


def ratio(slow: Sequence[Lap], fast: Sequence[Lap]) -> Lap:
    """How many times as long `slow` takes, as the median over paired rounds."""
    pairs = list(zip(slow, fast, strict=True))
    return Lap(
        statistics.median(a.wall / b.wall for a, b in pairs),
        statistics.median(a.cpu / b.cpu for a, b in pairs),
    )
