"""What the theory figures share: panels of fixed size, words above them, intervals, files."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from rbve.report import sheet
from rbve.report.canvas import LINE, MUTED, SIZE, inline
from rbve.report.page import Picture, encode
from rbve.rows import Run

WRAP = 112  # letters of a note per line
Z = 1.959964  # 95% of a normal distribution


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


def panels(columns: int, width: float, height: float, gap: float) -> list[Axes]:
    """A row on a figure of its own, sizes in inches."""
    total = width * columns + gap * (columns - 1)
    size = (total + 2, height + 2)
    figure = Figure(figsize=size)
    places = [1 + k * (width + gap) for k in range(columns)]
    return [
        figure.add_axes((left / size[0], 1 / size[1], width / size[0], height / size[1]))
        for left in places
    ]


def share_scale(row: Sequence[Axes]) -> None:
    """One scale of values."""
    low = min(axes.get_ylim()[0] for axes in row)
    high = max(axes.get_ylim()[1] for axes in row)
    for k, axes in enumerate(row):
        axes.set_ylim(low, high)
        if k:
            axes.tick_params(labelleft=False)


def legend(
    axes: Axes,
    lines: Sequence[tuple[str, str]],
    marks: Sequence[tuple[str, str, str]],
    above: float,
) -> None:
    """One line of names above the panels."""
    handles = [Line2D([], [], color=colour, linewidth=2, label=name) for name, colour in lines]
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
        columnspacing=1.5,
        handlelength=2.4,
        fontsize=SIZE - 0.5,
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


def finished(
    axes: Axes,
    words: tuple[str, str, str],
    numbers: bytes,
    above: float,
    left: float = 0.0,
) -> Picture:
    """`words`: name, title, note. The page says them itself; in the files they stand inside."""
    name, title, note = words
    figure: Any = axes.figure
    bare = inline(as_svg(figure, transparent=True), name)  # shadows of the page shine through
    head(axes, title, note, above, left)
    files = {"png": as_png(figure), "svg": encode(as_svg(figure)), "csv": numbers}
    return Picture(name, title, note, bare, files)


CUT: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.12, "facecolor": "white"}


def as_svg(figure: Figure, transparent: bool = False) -> str:
    file = io.StringIO()
    empty = {"Date": None, "Creator": None, "Format": None, "Type": None}
    options = {**CUT, "facecolor": "none", "transparent": True} if transparent else CUT
    figure.savefig(file, format="svg", metadata=empty, **options)
    return file.getvalue()


def as_png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=160, metadata={"Software": None}, **CUT)
    return file.getvalue()


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    return encode(sheet.as_csv(columns, rows))
