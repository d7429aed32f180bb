"""Range, ticks and places of an axis of values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from rbve.report.axis import Scale
from rbve.report.canvas import power, thousands

MAX_DECADES = 33  # from SMALL to the 10³⁰ that values not finite count as
SMALL = -3  # log₁₀: errors below a thousandth are as good as 0, and their ups and downs no news
SIGNED_SMALL = -2  # of both signs, lest the way through 0 takes all the room


class Axis:
    """Range and ticks of an axis of values."""

    def __init__(self, found: Sequence[float], scale: Scale, pad: float = 0.05) -> None:
        self.scale = scale
        self.ticks: list[float] | None = None
        if scale == "log":
            self.low, self.high = logarithmic([v for v in found if v > 0])
            self.ticks = powers(self.low, self.high)
        elif scale == "symlog":
            self.threshold, self.ticks = symlog(found)
            self.high = edge(self.ticks[-1], self.threshold)
            self.low = -edge(-self.ticks[0], self.threshold)
            gap = 0.06 * (self.at(self.high) - self.at(self.low))
            self.ticks = [t for t in self.ticks if not 0 < abs(self.at(t)) < gap]
        else:
            self.low, self.high = linear(found, pad)

    def at(self, value: float) -> float:
        if self.scale == "log":
            return math.log10(value)
        if self.scale == "symlog":
            size = abs(value) / self.threshold
            return math.copysign(size / 2 if size <= 1 else 0.5 + math.log10(size), value)
        return value

    def put_on(self, axes: Axes, name: str) -> None:
        """`name`: which axis, "x" or "y"."""
        axis = getattr(axes, f"{name}axis")
        if self.scale == "symlog":
            # linscale counts decades of an infinite base-10 series: .45 there is .5 of a decade.
            options = {"linthresh": self.threshold, "linscale": 0.45}
            getattr(axes, f"set_{name}scale")("symlog", **options)
            axis.set_major_locator(FixedLocator(self.ticks or []))
        elif self.scale == "log":
            getattr(axes, f"set_{name}scale")("log")
            axis.set_major_locator(FixedLocator(self.ticks or []))
        else:
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
            axis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))
        if self.scale in ("log", "symlog"):
            word = power if all(is_power(tick) for tick in self.ticks or []) else thousands
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: word(value)))
        getattr(axes, f"set_{name}lim")(self.low, self.high)


def linear(found: Sequence[float], pad: float) -> tuple[float, float]:
    low, high = min(found, default=0.0), max(found, default=1.0)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = 0.1 * abs(high) or 0.5
        return low - room, high + room
    room = pad * (high - low)
    return low - room, high + room


def logarithmic(found: Sequence[float]) -> tuple[float, float]:
    low, high = (math.log10(v) for v in (min(found, default=1.0), max(found, default=10.0)))
    room = 0.07 * (high - low) or 0.5
    return 10.0 ** max(low - room, -307), 10.0 ** min(high + room, 307)


def powers(low: float, high: float) -> list[float]:
    """Powers of ten, at most seven; round numbers where there are fewer than two."""
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    if last <= first:
        return [t for t in MaxNLocator(5).tick_values(low, high) if low <= t <= high]
    return [10.0**k for k in range(first, last + 1, math.ceil((last - first) / 6))]


def is_power(value: float) -> bool:
    return value == 0 or math.log10(abs(value)).is_integer()


def symlog(found: Sequence[float]) -> tuple[float, list[float]]:
    """Where the axis becomes logarithmic, and at most nine ticks, ascending."""
    sizes = [abs(value) for value in found if value] or [1.0]
    low, high = -min(found, default=0.0), max(found, default=0.0)
    least = SIGNED_SMALL if low > 0 else SMALL
    top = math.ceil(math.log10(max(sizes)) - 1e-9)
    small = math.floor(math.log10(min(sizes)) + 1e-9)
    bottom = min(max(small, top - MAX_DECADES, least), top - 1)
    step = math.ceil((top - bottom) / (3 if low > 0 and high > 0 else 6))
    powers = [10.0**k for k in range(top, bottom - 1, -step)][::-1]
    below = [-p for p in reversed(powers) if p < 10.0**step * low * (1 - 1e-9)] if low > 0 else []
    above = [p for p in powers if low <= 0 or p < 10.0**step * high * (1 - 1e-9)]
    return 10.0**bottom, [*below, 0.0, *above]


def edge(tick: float, threshold: float) -> float:
    """A little beyond the last tick of a side; a side without ticks keeps a sliver."""
    return 10.0 ** (math.log10(max(tick, threshold)) + 0.1) if tick > 0 else 0.2 * threshold
