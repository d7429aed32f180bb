"""What all pictures share: style, places of labels, numbers in words."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib

from rbve.report.chart import minus

SIZE = 9.0  # points, all labels
LINE = SIZE * 1.35 / 72  # inches per line of labels
INK, MUTED = "#222222", "#5c5c5c"
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (2, 1.2)), (0, (6, 1.5, 1.5, 1.5)))

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


@contextmanager
def style() -> Iterator[None]:
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names in other scripts
        yield


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
            return minus(f"{value / size:g}{sign}")
    return minus(f"{value:g}")


def power(value: float) -> str:
    """10⁻³ in plain characters."""
    if value == 0:
        return "0"
    if value < 0:
        return f"−{power(-value)}"
    exponent = round(math.log10(value))
    if -2 <= exponent <= 3:
        return f"{value:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
