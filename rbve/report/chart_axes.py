"""One panel of a chart on matplotlib axes: scales, series, intervals, single runs, marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter
from matplotlib.transforms import ScaledTranslation

from rbve.report.canvas import DASHES, MUTED, SIZE, spread, thousands
from rbve.report.chart import Chart, Mark, Panel, Point, Series, near_marks, shows, values
from rbve.report.chart_scale import Axis

MANY = 12  # points of a line from which on dots are left out
FAINT = 0.3
GRID = "#ececec"
MARK: dict[str, Any] = {"color": "#9a9a9a", "linewidth": 0.9, "linestyle": (0, (1, 2)), "zorder": 1}


def categories(chart: Chart) -> list[str]:
    """All x of a category axis, in order of appearance over the panels."""
    every = (
        str(x)
        for panel in chart.panels
        for each in panel.series
        for x in (*(point.x for point in each.points), *(x for x, _ in each.members))
    )
    return list(dict.fromkeys(every))


def named_by_rows(chart: Chart) -> bool:
    """Rows that carry the names of their series need no legend."""
    return chart.kind == "rows" and all(
        point.x == each.name for p in chart.panels for each in p.series for point in each.points
    )


def owners(panel: Panel) -> dict[str, list[str]]:
    """row -> names of the series that have something in it."""
    found: dict[str, list[str]] = {}
    for each in panel.series:
        for x in dict.fromkeys([*(p.x for p in each.points), *(x for x, _ in each.members)]):
            found.setdefault(str(x), []).append(each.name)
    return found


def slots(panel: Panel) -> int:
    """The most series that share a row."""
    return max((len(names) for names in owners(panel).values()), default=1)


class Panels:
    """What the panels of a chart have in common: categories, ranges of values, marks."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.categories = categories(chart)
        self.place = {name: float(k) for k, name in enumerate(self.categories)}
        self.marks = [near_marks(chart, panel) for panel in chart.panels]
        self.found = [values(chart, [p]) for p in chart.panels]
        for found, marks in zip(self.found, self.marks, strict=True):
            found += [mark.value for mark in marks]
        if chart.same_y:
            every = [value for found in self.found for value in found]
            self.found = [every] * len(self.found)

    def axis(self, index: int) -> Axis:
        return Axis(self.found[index], self.chart.y_scale)

    def share(self, index: int, value: float) -> float:
        """Place of a value on its axis, from 0 to 1."""
        axis = self.axis(index)
        low, high = axis.at(axis.low), axis.at(axis.high)
        return (axis.at(value) - low) / (high - low)


def draw_panel(axes: Axes, chart: Chart, index: int, shared: Panels) -> None:
    panel = chart.panels[index]
    if not shared.found[index]:
        middle: dict[str, Any] = {"ha": "center", "transform": axes.transAxes, "color": MUTED}
        axes.text(0.5, 0.5, "no data", fontstyle="italic", **middle)
    if chart.kind == "rows":
        shared.axis(index).put_on(axes, "x")
        row_axis(axes, len(shared.categories))
        for mark in shared.marks[index]:
            axes.axvline(mark.value, **MARK)
        rows_of = owners(panel)
        for each in panel.series:
            draw_rows(axes, chart, each, shared.place, rows_of)
        return
    shared.axis(index).put_on(axes, "y")
    x_axis(axes, chart, shared)
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    for mark in shared.marks[index]:
        axes.axhline(mark.value, **MARK)
    name_lines(axes, shared, index)
    longest = max((len(each.points) for each in panel.series), default=0)
    banded = longest > (2 if chart.x_scale == "linear" else MANY)
    for k, each in enumerate(panel.series):
        shift = None if banded else dodge(axes, chart, shared, k - (len(panel.series) - 1) / 2)
        draw_line(axes, chart, each, shared, shift)


def row_axis(axes: Axes, count: int) -> None:
    axes.set_ylim(max(count, 1) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    across = axes.get_yaxis_transform()
    axes.hlines(range(count), 0, 1, transform=across, color="#e6e6e6", linewidth=0.8, zorder=0)


def x_axis(axes: Axes, chart: Chart, shared: Panels) -> None:
    if chart.x_scale == "category":
        axes.set_xticks(range(len(shared.categories)), shared.categories)
        axes.set_xlim(-0.5, max(len(shared.categories), 1) - 0.5)
        return
    found = sorted(
        {
            float(x)
            for panel in chart.panels
            for each in panel.series
            for x in (*(p.x for p in each.points), *(x for x, _ in each.members))
            if shows(x, chart.x_scale)
        }
    )
    axis = Axis(found, chart.x_scale, pad=0.02 if len(found) > MANY else 0.07)
    axis.put_on(axes, "x")
    if chart.x_scale == "log" and len(found) <= 8:
        axes.xaxis.set_major_locator(FixedLocator(apart(found, axis)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))


def apart(found: Sequence[float], axis: Axis) -> list[float]:
    """Values far enough from one another for their labels, the last one always."""
    gap = 0.1 * (axis.at(axis.high) - axis.at(axis.low))
    kept: list[float] = []
    for value in reversed(found):
        if not kept or axis.at(kept[-1]) - axis.at(value) >= gap:
            kept.append(value)
    return kept[::-1]


def dodge(axes: Axes, chart: Chart, shared: Panels, steps: float) -> float:
    """Points to the side, so that intervals of several series at one x can be told apart."""
    if chart.x_scale != "category":
        return 1.8 * steps
    width = axes.get_position().width * axes.figure.get_figwidth() * 72  # type: ignore[union-attr]
    most = max(len(panel.series) for panel in chart.panels)
    return steps * min(9.0, 0.7 * width / max(len(shared.categories), 1) / most)


def moved(axes: Axes, shift: float) -> Any:
    figure: Any = axes.figure
    return axes.transData + ScaledTranslation(shift / 72, 0, figure.dpi_scale_trans)


def draw_line(axes: Axes, chart: Chart, each: Series, shared: Panels, shift: float | None) -> None:
    """Intervals are a band, or bars of points that are shifted to the side."""

    def at(x: float | str) -> float:
        return shared.place[str(x)] if chart.x_scale == "category" else float(x)

    place: dict[str, Any] = {"transform": moved(axes, shift or 0.0), "color": each.colour}
    few = len(each.points) <= MANY
    front = 4 if each.strong else 3
    for x, y in each.members:
        if shows(x, chart.x_scale) and shows(y, chart.y_scale):
            faint(axes, at(x), y, place)
    for part in unbroken(chart, each.points):
        xs = [at(p.x) for p in part]
        if shift is None:
            lows = [p.y if p.low is None else p.low for p in part]
            highs = [p.y if p.high is None else p.high for p in part]
            axes.fill_between(xs, lows, highs, alpha=0.13, linewidth=0, **place)
        else:
            for x, p in zip(xs, part, strict=True):
                if p.low is not None and p.high is not None:
                    axes.plot([x, x], [p.low, p.high], linewidth=1.3, alpha=0.75, **place)
        dotted = [k for k, p in enumerate(part) if few or p.note or len(part) == 1]
        axes.plot(
            xs,
            [p.y for p in part],
            linewidth=2.4 if each.strong else 1.5,
            linestyle=DASHES[each.dash % len(DASHES)],
            marker="o",
            markersize=5 if each.strong else 4.2,
            markevery=dotted,
            markerfacecolor="white" if each.marker == "ring" else each.colour,
            zorder=front,
            solid_capstyle="round",
            **place,
        )


def unbroken(chart: Chart, points: Sequence[Point]) -> list[list[Point]]:
    """Pieces of a line between points that have no place."""
    parts: list[list[Point]] = [[]]
    for point in points:
        if shows(point.x, chart.x_scale) and shows(point.y, chart.y_scale):
            parts[-1].append(point)
        else:
            parts.append([])
    return [part for part in parts if part]


def faint(axes: Axes, x: float, y: float, place: dict[str, Any]) -> None:
    options: dict[str, Any] = {"alpha": FAINT, "markersize": 4.0, "markeredgewidth": 0, "zorder": 2}
    axes.plot([x], [y], "o", **options, **place)


def draw_rows(
    axes: Axes,
    chart: Chart,
    each: Series,
    place: dict[str, float],
    rows_of: dict[str, list[str]],
) -> None:
    def at(name: float | str) -> float:
        names = rows_of[str(name)]
        return place[str(name)] + 0.8 * ((names.index(each.name) + 0.5) / len(names) - 0.5)

    colour: dict[str, Any] = {"color": each.colour}
    by_row: dict[str, list[float]] = {}
    for x, y in each.members:
        by_row.setdefault(str(x), []).append(y)
    for name, ys in by_row.items():
        reach = 0.16 / len(rows_of[name])  # a little above and below, so that equals stay apart
        offsets = np.linspace(-reach, reach, len(ys)) if len(ys) > 1 else [0.0]
        for y, offset in zip(ys, offsets, strict=True):
            if shows(y, chart.y_scale):
                faint(axes, y, at(name) + offset, colour)
    for p in each.points:
        if not shows(p.y, chart.y_scale):
            continue
        if p.low is not None and p.high is not None:
            ends = [v if shows(v, chart.y_scale) else p.y for v in (p.low, p.high)]
            width = 3.0 if each.strong else 2.0
            axes.plot(ends, [at(p.x)] * 2, linewidth=width, solid_capstyle="round", **colour)
        fill = "white" if each.marker == "ring" else each.colour
        dot: dict[str, Any] = {"markersize": 6.5, "markerfacecolor": fill, "zorder": 4}
        axes.plot([p.y], [at(p.x)], "o", **dot, **colour)


def name_lines(axes: Axes, shared: Panels, index: int) -> None:
    """Names of horizontal marks beside the axes, moved apart where they meet."""
    marks: list[Mark] = sorted(shared.marks[index])
    height = axes.get_position().height * axes.figure.get_figheight()  # type: ignore[union-attr]
    wanted = [shared.share(index, mark.value) for mark in marks]
    for mark, place in zip(marks, spread(wanted, SIZE * 1.2 / 72 / height), strict=True):
        axes.text(
            1.01,
            place,
            mark.name,
            transform=axes.transAxes,
            va="center",
            fontsize=SIZE - 1.5,
            fontstyle="italic",
            color=MUTED,
        )
