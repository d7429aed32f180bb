"""A chart as a picture, PNG and SVG: title and note, legend, panels below one another.

Drawn on Figure objects with the Agg and SVG back ends; pyplot and its global state stay out.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath

from rbve.report.canvas import DASHES, INK, LINE, MUTED, SIZE, style
from rbve.report.chart import Chart, Series, near_marks, words
from rbve.report.chart_axes import Panels, categories, draw_panel, named_by_rows, slots

WIDTHS = {1: 5.4, 2: 3.1, 3: 2.4}  # inches of a panel by columns
HEIGHTS = {1: 3.2, 2: 2.3, 3: 1.9}
ROW = 0.27  # inches of a row of one dot
BESIDE = {True: 0.3, False: 0.62}  # between panels, with and without a common axis
BELOW = 0.42  # under a panel: its ticks
SWATCH = 0.3


def draw(chart: Chart) -> tuple[bytes, bytes]:
    """PNG, SVG. Equal charts give equal bytes."""
    with style():
        figure = picture(chart)
        png, svg = io.BytesIO(), io.BytesIO()
        options: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.12, "facecolor": "white"}
        figure.savefig(png, format="png", dpi=160, metadata={"Software": None}, **options)
        empty = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(svg, format="svg", metadata=empty, **options)
        return png.getvalue(), svg.getvalue()


def picture(chart: Chart) -> Figure:
    count = len(chart.panels)
    columns = count if count <= 3 else 2 if count == 4 else 3
    rows = -(-count // columns)
    width, height = WIDTHS[columns], panel_height(chart, columns)
    beside = BESIDE[chart.kind == "rows" or chart.same_y] + mark_room(chart)
    levels = max((len(mark_levels(chart, k, width)) for k in range(count)), default=0)
    above = (0.3 if any(panel.title for panel in chart.panels) else 0.1) + levels * LINE
    wide = columns * width + (columns - 1) * beside
    tall = rows * (height + above) + (rows - 1) * BELOW
    # A margin of an inch: the saved picture is cut to what is drawn, or grows to hold it.
    size = (wide + 2, tall + 2)
    figure = Figure(figsize=size)
    shared = Panels(chart)
    for index in range(count):
        row, column = divmod(index, columns)
        left = 1 + column * (width + beside)
        bottom = 1 + tall - (row + 1) * (height + above) - row * BELOW
        box = (left / size[0], bottom / size[1], width / size[0], height / size[1])
        axes = figure.add_axes(box)
        draw_panel(axes, chart, index, shared)
        last = index + columns >= count
        finish_axes(axes, chart, first=column == 0, last=last)
        placed = mark_levels(chart, index, width)
        label_marks(axes, placed, height)
        top = 1 + (levels * LINE + 0.1) / height
        text = chart.panels[index].title
        axes.text(0, top, text, transform=axes.transAxes, fontsize=SIZE, fontweight="bold")
    heading(figure, chart, 1 + tall, wide)
    return figure


def panel_height(chart: Chart, columns: int) -> float:
    if chart.kind == "lines":
        return HEIGHTS[columns]
    most = max((slots(panel) for panel in chart.panels), default=1)
    lines = max((name.count("\n") + 1 for name in map(wrapped, categories(chart))), default=1)
    each = ROW * max(1.0, 0.55 * most, 0.7 * lines)
    return max(0.8, each * len(categories(chart)) + 0.15)


def mark_room(chart: Chart) -> float:
    """Inches for names of marks to the right of a panel."""
    if chart.kind == "rows":
        return 0.0
    names = {mark.name for panel in chart.panels for mark in near_marks(chart, panel)}
    return max((text_width(name, SIZE - 1.5) for name in names), default=0.0)


def wrapped(name: str) -> str:
    return "\n".join(textwrap.wrap(name, 30)[:3]) or name


def finish_axes(axes: Axes, chart: Chart, first: bool, last: bool) -> None:
    if chart.kind == "rows":
        names = categories(chart)
        axes.set_yticks(range(len(names)), [wrapped(name) for name in names])
        strong = {s.name: s.colour for p in chart.panels for s in p.series if s.strong}
        for label, name in zip(axes.get_yticklabels(), names, strict=True):
            label.set(color=strong.get(name, INK))
            label.set_fontweight("bold" if name in strong else "normal")
        axes.set_xlabel("\n".join(textwrap.wrap(chart.y_label, 42)) if last else "")
        axes.tick_params(axis="y", length=0, labelleft=first)
        return
    axes.set_xlabel(chart.x_label if last else "")
    axes.set_ylabel("\n".join(textwrap.wrap(chart.y_label, 34)) if first else "")
    if chart.same_y and not first:
        axes.tick_params(axis="y", labelleft=False)
    if chart.x_scale == "category":
        fit_labels(axes)


def fit_labels(axes: Axes) -> None:
    """Slanted where they would meet."""
    labels = axes.get_xticklabels()
    width = axes.get_position().width * axes.figure.get_figwidth()  # type: ignore[union-attr]
    if sum(text_width(label.get_text()) + 0.08 for label in labels) > width:
        for label in labels:
            label.set(rotation=30, ha="right", rotation_mode="anchor")


def text_width(text: str, size: float = SIZE) -> float:
    """Inches."""
    return TextPath((0, 0), text, size=size).get_extents().width / 72 if text.strip() else 0.0


Placed = list[tuple[float, str, float]]  # share of the width, name, its value


def mark_levels(chart: Chart, index: int, width: float) -> list[Placed]:
    """Names of vertical lines by level above the axes, so that they stay apart."""
    if chart.kind != "rows":
        return []
    shared = Panels(chart)
    levels: list[Placed] = []
    ends: list[float] = []
    for mark in sorted(shared.marks[index]):
        half = text_width(mark.name, SIZE - 1) / width / 2 + 0.015
        at = min(max(shared.share(index, mark.value), half), max(1 - half, half))
        level = next((k for k, end in enumerate(ends) if end <= at - half), len(ends))
        if level == len(ends):
            ends.append(0.0)
            levels.append([])
        ends[level] = at + half
        levels[level].append((at, mark.name, mark.value))
    return levels


def label_marks(axes: Axes, levels: Sequence[Placed], height: float) -> None:
    for level, placed in enumerate(levels):
        for at, name, _ in placed:
            axes.text(
                at,
                1 + (level * LINE + 0.04) / height,
                name,
                ha="center",
                transform=axes.transAxes,
                fontsize=SIZE - 1,
                fontstyle="italic",
                color=MUTED,
            )


def heading(figure: Figure, chart: Chart, bottom: float, wide: float) -> None:
    """From the bottom: legend, note, title. Places in inches."""
    wide = max(wide, 5.4)
    letters = int(wide * 17.5)
    bottom += 0.12
    if not named_by_rows(chart):
        bottom = legend(figure, chart, bottom, wide)
    for line in reversed(textwrap.wrap(words(chart), letters)):
        put(figure, 1, bottom, line, fontsize=SIZE - 1, color=MUTED)
        bottom += LINE
    bottom += 0.05
    for line in reversed(textwrap.wrap(chart.title, int(letters * 0.72))):
        put(figure, 1, bottom, line, fontsize=SIZE + 2, fontweight="bold")
        bottom += 1.25 * LINE


def put(figure: Figure, x: float, y: float, text: str, **options: Any) -> None:
    figure.text(x / figure.get_figwidth(), y / figure.get_figheight(), text, **options)


def entries(chart: Chart) -> list[Series]:
    """Series of all panels, each name once."""
    first: dict[str, Series] = {}
    for panel in chart.panels:
        for each in panel.series:
            first.setdefault(each.name, each)
    return list(first.values())


def legend(figure: Figure, chart: Chart, bottom: float, wide: float) -> float:
    """In lines as wide as the panels; returns where it ends."""
    lines: list[list[tuple[float, Series]]] = []
    x = wide
    for each in entries(chart):
        need = SWATCH + text_width(each.name) * (1.08 if each.strong else 1.0) + 0.2
        if x + need > wide + 0.2:
            lines.append([])
            x = 0.0
        lines[-1].append((x, each))
        x += need
    for line in reversed(lines):
        for x, each in line:
            swatch(figure, chart, each, 1 + x, bottom + 0.045)
            weight = "bold" if each.strong else "normal"
            put(figure, 1 + x + SWATCH, bottom, each.name, fontweight=weight)
        bottom += 1.15 * LINE
    return bottom + 0.08


def swatch(figure: Figure, chart: Chart, each: Series, x: float, y: float) -> None:
    wide, high = figure.get_size_inches()
    line = Line2D(
        [x / wide, (x + 0.12) / wide, (x + 0.24) / wide],
        [y / high] * 3,
        color=each.colour,
        linestyle=DASHES[each.dash % len(DASHES)] if chart.kind == "lines" else "none",
        linewidth=2.4 if each.strong else 1.6,
        marker="o",
        markevery=[1],
        markersize=5,
        markerfacecolor="white" if each.marker == "ring" else each.colour,
    )
    figure.add_artist(line)
