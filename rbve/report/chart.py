"""A figure as data: drawn as a picture, in the browser, and as a table of its numbers.

Who makes a chart says what is in it; how it looks is the renderers' matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rbve.report.axis import Scale
from rbve.report.figure import minus


class Point(NamedTuple):
    x: float | str  # text on a category axis
    y: float  # a point that is not finite is left out, and said so
    low: float | None = None  # 95% interval
    high: float | None = None
    n: int = 0  # runs behind it; 0 = not said
    note: str = ""  # more words, shown on hover


@dataclass(frozen=True)
class Series:
    """One entry of the legend. Series of one name in several panels are switched together."""

    name: str
    colour: str  # for white paper, "#rrggbb"
    points: tuple[Point, ...]
    members: tuple[tuple[float | str, float], ...] = ()  # single runs, drawn faintly
    dash: int = 0  # line style, tells series of one colour apart
    marker: Literal["dot", "ring"] = "dot"
    strong: bool = False  # the one to look at

    @property
    def pairs(self) -> list[tuple[float | str, float]]:
        """x and y of points and single runs."""
        return [*((point.x, point.y) for point in self.points), *self.members]


class Mark(NamedTuple):
    """A value to compare with: a thin line across the panel."""

    value: float
    name: str


@dataclass(frozen=True)
class Panel:
    title: str  # "" where the chart has one panel
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Chart:
    """lines: y over x. rows: a row per category x from the top, its value y along the width."""

    name: str  # for file names and ids: letters, digits, hyphens; unique within a page
    title: str
    note: str  # how to read it: what a dot and a bar are, n
    kind: Literal["lines", "rows"]
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    same_y: bool = False  # one range of values for all panels


def categories(panels: Sequence[Panel]) -> list[str]:
    """All x of a category axis, in order of appearance over the panels."""
    every = (name for panel in panels for each in panel.series for name in places(each))
    return list(dict.fromkeys(every))


def places(each: Series) -> dict[str, float | str]:
    """All x of a series, by their words."""
    return {str(x): x for x, _ in each.pairs}


def named_by_rows(chart: Chart) -> bool:
    """Rows that carry the names of their series need no legend."""
    return chart.kind == "rows" and all(
        point.x == each.name for p in chart.panels for each in p.series for point in each.points
    )


def series_of(chart: Chart) -> list[Series]:
    """Of all panels, each name once."""
    first: dict[str, Series] = {}
    for panel in chart.panels:
        for each in panel.series:
            first.setdefault(each.name, each)
    return list(first.values())


def words(chart: Chart) -> str:
    """The note, and what the drawing does not show."""
    hidden: dict[str, int] = {}
    far = []
    for panel in chart.panels:
        for each in panel.series:
            lost = sum(not drawn(chart, x, y) for x, y in each.pairs)
            if lost:
                hidden[each.name] = hidden.get(each.name, 0) + lost
        place = f" ({panel.title})" if panel.title else ""
        away = [mark for mark in panel.marks if mark not in near_marks(chart, panel)]
        far += [f"{mark.name} {minus(f'{mark.value:.4g}')}{place}" for mark in away]
    parts = [chart.note]
    if hidden:
        counts = ", ".join(f"{name} {count}" for name, count in hidden.items())
        scale = " or not positive" if "log" in (chart.x_scale, chart.y_scale) else ""
        parts.append(f"Left out, since not finite{scale}: {counts}.")
    if far:
        parts.append(f"Off the axis: {', '.join(far)}.")
    return " ".join(parts)


def shows(value: float | str, scale: Scale) -> bool:
    """Whether a value has a place on an axis."""
    if scale == "category" or isinstance(value, str):
        return True
    return math.isfinite(value) and (scale != "log" or value > 0)


def drawn(chart: Chart, x: float | str, y: float) -> bool:
    return shows(x, chart.x_scale) and shows(y, chart.y_scale)


def values(chart: Chart, panels: Iterable[Panel]) -> list[float]:
    """All y of panels that have a place on the axis: points, intervals, single runs."""
    series = [each for panel in panels for each in panel.series]
    every = [
        end for each in series for p in each.points for end in (p.low, p.high) if end is not None
    ]
    every += [y for each in series for _, y in each.pairs]
    return [value for value in every if shows(value, chart.y_scale)]


def near_marks(chart: Chart, panel: Panel) -> list[Mark]:
    """Without those so far off that they would squeeze the rest."""
    found = values(chart, chart.panels if chart.same_y else [panel])
    shown = [mark for mark in panel.marks if shows(mark.value, chart.y_scale)]
    if not found or chart.y_scale != "linear":
        return shown
    low, high = min(found), max(found)
    reach = 2 * max(high - low, 1e-9 + 0.05 * max(abs(low), abs(high)))
    return [mark for mark in shown if low - reach <= mark.value <= high + reach]


COLUMNS = ("panel", "series", "x", "y", "low", "high", "n", "note")
