"""Range and ticks of axes that Vega would label badly: logarithms, and logarithms around 0."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from rbve.report.figure import minus

Scale = Literal["linear", "log", "symlog", "category"]  # symlog: a log axis that begins at 0

_MAX_DECADES = 33  # from SMALL to the 10³⁰ that values not finite count as
SMALL = -3  # log₁₀: errors below a thousandth are as good as 0, and their ups and downs no news
_SIGNED_SMALL = -2  # of both signs, lest the way through 0 takes all the room
FEW = 8  # values that a log axis labels one by one
# 20,000 as 20k; small numbers as they are.
LABEL = (
    "abs(datum.value) >= 1e15 || (datum.value != 0 && abs(datum.value) < 1e-4) ? "
    "format(datum.value, '.2~e') : "
    "format(datum.value, abs(datum.value) >= 1000 ? '~s' : '~r')"
)


class Ticks(NamedTuple):
    """Options of a channel's scale and axis."""

    scale: dict[str, Any]
    axis: dict[str, Any]


class Axis:
    """Range and ticks of an axis of values; `pad`: room at both ends of a linear one."""

    def __init__(self, found: Sequence[float], scale: Scale, pad: float = 0.05) -> None:
        self.kind = scale
        self.values: list[float] | None = None  # None: Vega's choice
        self.threshold = 1.0
        if scale == "log":
            known = [math.log10(value) for value in found if value > 0] or [0.0, 1.0]
            room = 0.07 * (max(known) - min(known)) or 0.5
            low, high = max(min(known) - room, -307), min(max(known) + room, 307)
            self.low, self.high = 10.0**low, 10.0**high
            self.values = powers(math.ceil(low), math.floor(high))
        elif scale == "symlog":
            self.threshold, ticks = symlog(found)
            self.low, self.high = -self.edge(-ticks[0]), self.edge(ticks[-1])
            gap = 0.06 * (self.at(self.high) - self.at(self.low))
            self.values = [tick for tick in ticks if not 0 < abs(self.at(tick)) < gap]
        else:
            low, high = min(found, default=0.0), max(found, default=1.0)
            flat = high - low <= 1e-9 * max(abs(low), abs(high))
            room = (0.1 * abs(high) or 0.5) if flat else pad * (high - low)
            self.low, self.high = low - room, high + room
        self.labels = [power(tick) for tick in self.values or []]

    def edge(self, tick: float) -> float:
        """A little beyond the last tick of a side; a side without ticks keeps a sliver."""
        least = self.threshold
        return 10.0 ** (math.log10(max(tick, least)) + 0.1) if tick > 0 else 0.2 * least

    def at(self, value: float) -> float:
        if self.kind == "log":
            return math.log10(value)
        if self.kind == "symlog":
            return math.copysign(math.log1p(abs(value) / self.threshold), value)
        return value

    def share(self, value: float) -> float:
        """Place on the axis, from 0 to 1."""
        low, high = self.at(self.low), self.at(self.high)
        return (self.at(value) - low) / (high - low)

    def one_by_one(self, found: Sequence[float]) -> None:
        """Label a few values themselves, as far as their labels stay apart."""
        kept: list[float] = []
        for value in sorted(set(found), reverse=True):
            if not kept or self.share(kept[-1]) - self.share(value) >= 0.1:
                kept.append(value)
        self.values = kept[::-1]
        self.labels = [thousands(value) for value in self.values]

    @property
    def ticks(self) -> Ticks:
        kind = {"type": self.kind} if self.kind in ("log", "symlog") else {}
        constant = {"constant": self.threshold} if self.kind == "symlog" else {}
        scale = {**kind, **constant, "domain": [self.low, self.high]}
        if self.values is None:
            return Ticks(scale, {})
        words = f"{json.dumps(self.labels)}[indexof({json.dumps(self.values)}, datum.value)]"
        return Ticks(scale, {"values": self.values, "labelExpr": words})


def powers(first: int, last: int) -> list[float] | None:
    """Powers of ten, at most seven; None where there are fewer than two."""
    step = math.ceil((last - first) / 6)
    return [10.0**k for k in range(first, last + 1, step)] if last > first else None


def symlog(found: Sequence[float]) -> tuple[float, list[float]]:
    """Where the axis becomes logarithmic, and at most nine ticks, ascending."""
    sizes = [abs(value) for value in found if value] or [1.0]
    low, high = -min(found, default=0.0), max(found, default=0.0)
    least = _SIGNED_SMALL if low > 0 else SMALL
    top = math.ceil(math.log10(max(sizes)) - 1e-9)
    small = math.floor(math.log10(min(sizes)) + 1e-9)
    bottom = min(max(small, top - _MAX_DECADES, least), top - 1)
    step = math.ceil((top - bottom) / (3 if low > 0 and high > 0 else 6))
    powers = [10.0**k for k in range(top, bottom - 1, -step)][::-1]
    below = [-p for p in reversed(powers) if p < 10.0**step * low * (1 - 1e-9)] if low > 0 else []
    above = [p for p in powers if low <= 0 or p < 10.0**step * high * (1 - 1e-9)]
    return 10.0**bottom, [*below, 0.0, *above]


def thousands(value: float, digits: str = "g") -> str:
    """With k, M or G."""
    signs = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
    size, sign = next((each for each in signs if abs(value) >= each[0]), (1, ""))
    return minus(f"{value / size:{digits}}{sign}")


def power(value: float) -> str:
    """1e4: superscripts are not in every font."""
    exponent = round(math.log10(abs(value))) if value else 0
    return minus(f"{value:g}" if -2 <= exponent <= 3 else f"{'-' if value < 0 else ''}1e{exponent}")
