"""Points of the theory figures: means and shares over random problems, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rbve.report import statistics
from rbve.report.chart import Point

Z = 1.959964  # 95% of a normal distribution


def estimated(x: float, values: Iterable[float]) -> Point:
    """Mean with its Student interval."""
    found = statistics.estimate(values)
    return Point(x, found.mean, found.low, found.high, found.n)


def share(x: float | str, part: float, hits: float, n: int) -> Point:
    """A share of n with its Wilson interval."""
    return Point(x, part, *wilson(hits, n), n)


def wilson(hits: float, n: int) -> tuple[float, float]:
    """95% Wilson score interval of a share."""
    if n == 0:
        return 0.0, 1.0
    part, z2 = hits / n, Z * Z
    middle = (part + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * math.sqrt(part * (1 - part) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)
