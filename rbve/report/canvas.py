"""What all figures share: style, a canvas of fixed axes, labels that stay apart, saving."""

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath

from rbve.report.summary import Problem

SIZE = 9.0  # points, all labels
LINE = SIZE * 1.35 / 72  # inches per line of labels
WIDTH = 4.9  # inches, of the axes
INK, MUTED = "#222222", "#5c5c5c"

STYLE: dict[Any, Any] = {
    "font.size": SIZE,
    "text.color": INK,
    "text.parse_math": False,  # a $ in a name is a $
    "axes.edgecolor": "#8a8a8a",
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "svg.fonttype": "none",  # text stays text: searchable and small
    "svg.hashsalt": "rbve",  # equal input, equal file
}


class Drawing(NamedTuple):
    kind: str  # for file names
    title: str
    description: str  # what the figure shows, in words
    svg: str  # for inlining: no prolog, no namespaces, ids unique by `prefix`
    png: bytes


@contextmanager
def style() -> Iterator[None]:
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names in other scripts
        yield


def canvas(height: float) -> tuple[Figure, Axes]:
    """Axes of a fixed size; the saved picture grows around the labels."""
    figure = Figure(figsize=(WIDTH + 2, height + 2))
    box = (1 / (WIDTH + 2), 1 / (height + 2), WIDTH / (WIDTH + 2), height / (height + 2))
    return figure, figure.add_axes(box)


def label_ends(axes: Axes, ends: Sequence[tuple[float, str, str, bool]]) -> None:
    """Names in the right margin at the height of their lines, moved apart where they meet."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    height = axes.get_position().height * axes.figure.get_figheight()  # type: ignore[union-attr]
    ends = sorted(ends, key=lambda end: end[0])
    wanted = [(value - low) / (high - low) for value, *_ in ends]
    places = spread(wanted, LINE / height)
    for (_, name, colour, bold), at, place in zip(ends, wanted, places, strict=True):
        axes.plot(
            [1.01, 1.045],
            [at, place],
            transform=axes.transAxes,
            color=colour,
            linewidth=0.8,
            clip_on=False,
        )
        axes.text(
            1.055,
            place,
            name,
            transform=axes.transAxes,
            color=colour,
            fontweight="bold" if bold else "normal",
            fontstyle="italic" if colour == MUTED else "normal",
            va="center",
        )


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Ascending places from 0 to 1, at least `gap` apart, near the wanted ones (pooled means)."""
    blocks: list[list[float]] = []  # [sum of (wanted − own offset), members]
    for index, place in enumerate(wanted):
        blocks.append([place - index * gap, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, members = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += members
    starts = [total / members for total, members in blocks for _ in range(int(members))]
    places = [start + index * gap for index, start in enumerate(starts)]
    for back in range(1, len(places) + 1):  # inside the axes
        places[-back] = min(places[-back], 1 - (back - 1) * gap)
    return [max(place, index * gap) for index, place in enumerate(places)]


def label_marks(axes: Axes, marks: Sequence[tuple[float, str]]) -> int:
    """Names of vertical lines above the axes, on as many levels as keep them apart."""
    low, high = axes.get_xlim()
    height = axes.get_position().height * axes.figure.get_figheight()  # type: ignore[union-attr]
    ends: list[float] = []  # right end of the last name on each level, share of the width
    for value, name in marks:
        width = TextPath((0, 0), name, size=SIZE - 1).get_extents().width / 72 / WIDTH + 0.03
        at = (value - low) / (high - low)
        left = min(max(at - width / 2, 0.0), 1.0 - width)
        level = next((k for k, end in enumerate(ends) if end <= left), len(ends))
        ends[level : level + 1] = [left + width]
        bottom = 1 + (level * LINE + 0.04) / height
        place: dict[str, Any] = {"transform": axes.transAxes, "fontsize": SIZE - 1, "color": MUTED}
        axes.text(left + width / 2, bottom, name, ha="center", fontstyle="italic", **place)
    return len(ends)


def title(
    figure: Figure, axes: Axes, text: str, problem: Problem, note: str, above: int = 0
) -> None:
    """Three parts from the top: what, of which problem, how to read it."""
    height = axes.get_position().height * figure.get_figheight()
    small = [*textwrap.wrap(problem.label, 74), *textwrap.wrap(note, 90)]
    bottom = above * LINE + 0.12
    for line in reversed(small):
        place: dict[str, Any] = {"transform": axes.transAxes, "fontsize": SIZE - 1}
        axes.text(0, 1 + bottom / height, line, color=MUTED, **place)
        bottom += LINE
    top = 1 + (bottom + 0.04) / height
    axes.text(0, top, text, transform=axes.transAxes, fontsize=SIZE + 2, fontweight="bold")


def finish(
    figure: Figure, kind: str, name: str, problem: Problem, note: str, prefix: str
) -> Drawing:
    svg, png = io.StringIO(), io.BytesIO()
    options: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.12, "facecolor": "white"}
    empty = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(svg, format="svg", metadata=empty, **options)
    figure.savefig(png, format="png", dpi=160, metadata={"Software": None}, **options)
    text = inline(svg.getvalue(), prefix)
    return Drawing(kind, f"{name}: {problem.label}", note, text, png.getvalue())


def inline(svg: str, prefix: str) -> str:
    """The <svg> element alone, with ids that do not meet those of another figure."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    return re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)


def thousands(value: float) -> str:
    for size, sign in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{sign}"
    return f"{value:g}"


def power(value: float) -> str:
    """10⁻³ in plain characters."""
    if value == 0:
        return "0"
    exponent = round(math.log10(value))
    if -2 <= exponent <= 3:
        return f"{value:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
