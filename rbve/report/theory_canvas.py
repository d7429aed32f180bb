"""What the theory figures share: panels of fixed size, a heading above, intervals of shares."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rbve.report.canvas import LINE, MUTED, SIZE, Drawing, inline
from rbve.rows import Run

GRID = "#ececec"
WRAP = 112  # letters of a note per line
Z = 1.959964  # 95% of a normal distribution


class Panel(NamedTuple):
    """One line with intervals."""

    name: str
    colour: str
    dash: Any
    points: Sequence[tuple[float, float, float, float]]  # x, y, low, high


def wilson(hits: float, n: int) -> tuple[float, float]:
    """95% Wilson score interval of a share."""
    if n == 0:
        return 0.0, 1.0
    share, z2 = hits / n, Z * Z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def series(run: Run, metric: str) -> list[tuple[int, float]]:
    return [(row.step, row.value) for row in run.rows if row.metric == metric]


def keyed(run: Run, start: str, numbers: bool = False) -> dict[str, float]:
    """Values by what follows `start` in the metric; `numbers`: only where that is a number."""
    found = {r.metric[len(start) :]: r.value for r in run.rows if r.metric.startswith(start)}
    return {key: value for key, value in found.items() if not numbers or key.isdigit()}


def panels(
    rows: int,
    columns: int | Sequence[int],
    width: float,
    height: float,
    gap: tuple[float, float],
) -> tuple[Figure, list[list[Axes]]]:
    """Axes in inches. One number of columns: each `width` wide; several: each row `width` wide."""
    counts = [columns] * rows if isinstance(columns, int) else list(columns)
    across, down = gap
    total = width * columns + across * (columns - 1) if isinstance(columns, int) else width
    tall = height * rows + down * (rows - 1)
    figure = Figure(figsize=(total + 2, tall + 2))
    grid = []
    for row, count in enumerate(counts):
        room = across if isinstance(columns, int) or row == 0 else 2.6 * across
        own = (total - room * (count - 1)) / count
        bottom = 1 + tall - (row + 1) * height - row * down
        grid.append(
            [
                figure.add_axes(
                    (
                        (1 + k * (own + room)) / (total + 2),
                        bottom / (tall + 2),
                        own / (total + 2),
                        height / (tall + 2),
                    )
                )
                for k in range(count)
            ]
        )
    return figure, grid


def share_scales(grid: Sequence[Sequence[Axes]]) -> None:
    """Panels of one row share their scale of values, rows their scale below."""
    for row in grid:
        low = min(axes.get_ylim()[0] for axes in row)
        high = max(axes.get_ylim()[1] for axes in row)
        for k, axes in enumerate(row):
            axes.set_ylim(low, high)
            if k:
                axes.tick_params(labelleft=False)
    for row in grid[:-1]:
        for axes in row:
            axes.tick_params(labelbottom=False)


def legend(
    axes: Axes,
    lines: Sequence[tuple[str, str, Any]],
    marks: Sequence[tuple[str, str, str]] = (),
    above: float = 1.0,
    tight: bool = False,
) -> None:
    """One line of names above the panels."""
    handles = [
        Line2D([], [], color=colour, linestyle=dash, linewidth=2, label=name)
        for name, colour, dash in lines
    ]
    handles += [
        Line2D([], [], color=colour, marker=mark, linestyle="", label=name)
        for name, colour, mark in marks
    ]
    axes.legend(
        handles=handles,
        ncols=len(handles),
        loc="lower left",
        bbox_to_anchor=(0, 1 + above * LINE / inches(axes)),
        frameon=False,
        borderaxespad=0,
        borderpad=0,
        columnspacing=1.0 if tight else 1.5,
        handlelength=1.0 if tight else 2.4,
        fontsize=SIZE - 0.5,
    )


def names_below(axes: Axes) -> None:
    """The labelled lines of one panel, in two columns under it."""
    axes.legend(
        ncols=2,
        loc="upper left",
        bbox_to_anchor=(-0.02, -3.1 * LINE / inches(axes)),
        frameon=False,
        borderaxespad=0,
        columnspacing=1.2,
        handlelength=2.2,
        fontsize=SIZE - 1,
    )


def inches(axes: Axes) -> float:
    return axes.get_position().height * axes.figure.get_figheight()  # type: ignore[union-attr]


def head(axes: Axes, text: str, note: str, above: float, left: float = 0.0) -> None:
    """Title and note, `above` so many lines over the upper left panel, from its share `left`."""
    height = inches(axes)
    bottom = above * LINE + 0.12
    for line in reversed(textwrap.wrap(note.replace("n = ", "n\u00a0=\u00a0"), WRAP)):
        place: dict[str, Any] = {"transform": axes.transAxes, "fontsize": SIZE - 1}
        axes.text(left, 1 + bottom / height, line, color=MUTED, **place)
        bottom += LINE
    top = 1 + (bottom + 0.04) / height
    axes.text(left, top, text, transform=axes.transAxes, fontsize=SIZE + 2, fontweight="bold")


def save(figure: Figure, kind: str, title: str, note: str, prefix: str) -> Drawing:
    svg, png = io.StringIO(), io.BytesIO()
    options: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.12, "facecolor": "white"}
    empty = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(svg, format="svg", metadata=empty, **options)
    figure.savefig(png, format="png", dpi=160, metadata={"Software": None}, **options)
    return Drawing(kind, title, note, inline(svg.getvalue(), prefix), png.getvalue())
