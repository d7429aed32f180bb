"""Charts of an audit as inline SVG that takes the colours of the page around it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from rbve.audit.measure import Histogram

WIDTH = 430  # units; letters stay readable on a phone, where a unit is .8 pixels
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 22, 34  # around the plot
PLOT = 170  # height
BAR = 20  # height of a row of a bar chart
STEEPNESS = 96  # points of a curve
MOST = 24  # rows of a chart of actions
LONGEST = 18  # characters of a label


class Chart(NamedTuple):
    kind: str  # for ids
    title: str
    note: str  # how to read it
    svg: str


class Axis(NamedTuple):
    low: float
    high: float
    start: float  # place of `low`
    stop: float  # place of `high`

    def at(self, value: float) -> float:
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) / span * (self.stop - self.start)


def drawing(height: float, words: str, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" aria-label="{escape(words)}" viewBox="0 0 {WIDTH} {height:g}" '
        f'class="chart">{"".join(parts)}</svg>'
    )


def histogram(
    kind: str, title: str, data: Histogram, unit: str, mean: float | None = None, note: str = ""
) -> Chart:
    parts, across = bars(data, unit)
    if mean is not None:
        parts += mark(across, mean, f"mean {short(mean)}")
    words = f"{title}: {describe(data)}. {note}"
    return Chart(kind, title, note, drawing(TOP + PLOT + BOTTOM, words, parts))


def bars(data: Histogram, unit: str) -> tuple[list[str], Axis]:
    """The bars with their axes."""
    across = Axis(data.edges[0], data.edges[-1], LEFT, WIDTH - RIGHT)
    up = Axis(0, max(data.counts), TOP + PLOT, TOP)
    parts = []
    for value in ticks(0, up.high, 4, integers=True):
        parts.append(line(LEFT, up.at(value), WIDTH - RIGHT, up.at(value), "grid"))
        parts.append(text(LEFT - 5, up.at(value) + 4, short(value), "end"))
    for k, count in enumerate(data.counts):
        x, stop = across.at(data.edges[k]), across.at(data.edges[k + 1])
        y = min(up.at(count), TOP + PLOT - 1.5) if count else TOP + PLOT
        wide = max(stop - x - 0.8, 0.6)
        parts.append(box(x, y, wide, TOP + PLOT - y, "bar"))
    return [*parts, *axis_below(across, unit, whole(data))], across


def values(
    data: Histogram, mean: float, deviation: float, betas: Sequence[tuple[str, float]], cap: float
) -> Chart:
    """Distribution of V̂ with the weight each value gets; curves are (name, scale · β)."""
    parts, across = bars(data, "V̂(s)")
    up = Axis(0, cap, TOP + PLOT, TOP + 4)
    for index, (name, temperature) in enumerate(betas):
        points = []
        for k in range(STEEPNESS + 1):
            value = across.low + (across.high - across.low) * k / STEEPNESS
            exponent = min((value - mean) / temperature, math.log(cap))
            points.append(f"{across.at(value):.1f},{up.at(math.exp(exponent)):.1f}")
        parts.append(f'<polyline class="curve c{index}" points="{" ".join(points)}"/>')
        y = TOP - 8
        x = LEFT + 150 * index
        parts.append(line(x, y - 4, x + 18, y - 4, f"curve c{index}"))
        parts.append(text(x + 23, y, f"w(s), {name}", "start"))
    parts += mark(across, mean, "")
    note = (
        f"curves: weight of a state in the ranking term, from 0 to the cap of {cap:g} at the top; "
        "dashed line: mean, where the weight is 1"
    )
    words = f"Distribution of V̂: {describe(data)}, deviation {short(deviation)}. {note}"
    return Chart("values", "V̂ and its weight", note, drawing(TOP + PLOT + BOTTOM, words, parts))


class Row(NamedTuple):
    """Of a chart of actions: one action, or all that have no row of their own."""

    label: str  # short, no two alike
    name: str  # in full
    members: list[int]

    def of(self, values: Sequence[int]) -> int:
        return sum(values[action] for action in self.members)


def action_rows(names: Sequence[str], counts: Sequence[int], most: int = MOST) -> list[Row]:
    """All actions as they are declared; of many the most frequent, the rest in one row."""
    kept, rest = list(range(len(names))), []
    if len(names) > most:
        ranked = sorted(kept, key=lambda action: -counts[action])
        kept, rest = ranked[: most - 1], ranked[most - 1 :]
    labels = short_labels([names[action] for action in kept])
    rows = [Row(label, names[k], [k]) for label, k in zip(labels, kept, strict=True)]
    other = f"{len(rest):,} other actions"
    return [*rows, Row(other, other, rest)] if rest else rows


def short_labels(names: Sequence[str]) -> list[str]:
    """Cut to LONGEST characters: at the end, or where that makes two alike in the middle."""
    ends = [n if len(n) <= LONGEST else f"{n[: LONGEST - 1]}…" for n in names]
    middle = [n if len(n) <= LONGEST else f"{n[:7]}…{n[-(LONGEST - 8) :]}" for n in names]
    found = [m if ends.count(e) > 1 else e for e, m in zip(ends, middle, strict=True)]
    alike = [found.count(label) > 1 for label in found]
    return [
        f"{label[: LONGEST - 5]}… {k + 1}" if clash else label
        for k, (label, clash) in enumerate(zip(found, alike, strict=True))
    ]


def actions(rows: Sequence[Row], counts: Sequence[int]) -> Chart:
    """Shares are of all decisions."""
    taken = [row.of(counts) for row in rows]
    total, most = max(sum(counts), 1), max(*taken, 1)
    left = label_width([row.label for row in rows])
    parts = []
    for place, (row, count) in enumerate(zip(rows, taken, strict=True)):
        y = TOP - 12 + place * BAR
        wide = (WIDTH - left - 60) * count / most
        kind = "bar" if len(row.members) == 1 else "bar rest"
        parts.append(text(left - 6, y + 12, row.label, "end", row.name))
        parts.append(box(left, y, max(wide, 1.0 if count else 0.0), BAR - 5, kind))
        parts.append(text(left + wide + 5, y + 12, f"{count / total:.1%}", "start"))
    pairs = zip(rows, taken, strict=True)
    words = "Actions taken: " + ", ".join(f"{r.name} {c:,} ({c / total:.1%})" for r, c in pairs)
    note = ""
    if len(rows[-1].members) > 1:
        note = f"the {len(rows) - 1} most frequent of {len(counts):,}; shares of all decisions"
    height = TOP + BAR * len(rows)
    return Chart("actions", "Actions taken", note, drawing(height, words, parts))


PATTERNS = (
    '<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="5" class="hatch"/></pattern>'
    '<pattern id="dots" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<rect x="0" y="0" width="5" height="5" class="ground"/>'
    '<rect x="1.5" y="1.5" width="2" height="2" class="dot"/></pattern></defs>'
)


def regions(
    rows: Sequence[Row],
    cells: Sequence[Sequence[int]],
    legal: Sequence[Sequence[int]] | None,
    enough: int,
) -> Chart:
    """Heat map: a column per cell as wide as its visits, a row per action."""
    left = label_width([row.label for row in rows])
    total = max(sum(map(sum, cells)), 1)
    # The strongest colour is that of the action taken most in a region.
    most = max(row.of(c) / sum(c) for c in cells for row in rows if len(row.members) == 1)
    parts, x, drawn = [], float(left), {"none": 0, "illegal": 0, "heat": 0}
    for k, cell in enumerate(cells):
        visits = sum(cell)
        wide = (WIDTH - left - RIGHT) * visits / total
        for place, row in enumerate(rows):
            count = row.of(cell)
            kind = "heat" if count >= enough else "none"
            if legal is not None and not row.of(legal[k]):
                kind = "illegal"
            drawn[kind] += 1
            shade = min(0.08 + 0.92 * count / visits / most, 1.0) if kind == "heat" else 1.0
            y = TOP - 12 + place * BAR
            parts.append(box(x, y, max(wide - 0.5, 0.4), BAR - 1, kind, shade))
        x += wide
    for place, row in enumerate(rows):
        parts.append(text(left - 6, TOP + 2 + place * BAR, row.label, "end", row.name))
    legend = {"heat": "taken", "none": f"legal, under {enough} rows"}
    if legal is None:
        legend["none"] = f"under {enough} rows"
    else:
        legend["illegal"] = "never legal there"
    y, x = TOP + BAR * len(rows), 4.0
    for kind, words in legend.items():
        parts += [box(x, y, 14, 14, kind), text(x + 19, y + 11, words, "start")]
        x += 30 + 7.6 * len(words)
    note = (
        f"{len(cells)} regions of like states from left to right, as wide as they are visited; "
        "stronger colour: taken more often there"
    )
    counted = ", ".join(f"{drawn[kind]} {words}" for kind, words in legend.items())
    words = (
        f"Actions over the state space. {note}. Of {len(cells) * len(rows)} pairs of a region and "
        f"an action: {counted}."
    )
    svg = drawing(y + 20, words, [PATTERNS, *parts])
    return Chart("regions", "Actions over the state space", note, svg)


def mark(across: Axis, value: float, label: str) -> list[str]:
    x = across.at(value)
    anchor = "end" if x > WIDTH / 2 else "start"
    shift = -4 if anchor == "end" else 4
    return [
        line(x, TOP - 4, x, TOP + PLOT, "mark"),
        *([text(x + shift, TOP - 8, label, anchor)] if label else []),
    ]


def axis_below(across: Axis, unit: str, integers: bool) -> list[str]:
    y = TOP + PLOT
    parts = [line(LEFT, y, WIDTH - RIGHT, y, "axis")]
    for value in ticks(across.low, across.high, 6, integers):
        parts.append(line(across.at(value), y, across.at(value), y + 4, "axis"))
        parts.append(text(across.at(value), y + 16, short(value), "middle"))
    middle = (across.start + across.stop) / 2
    return [*parts, text(middle, y + 30, unit, "middle")]


def ticks(low: float, high: float, most: int, integers: bool = False) -> list[float]:
    """At most about `most` round numbers from low to high."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * k for k in (1, 2, 2.5, 5, 10) if size * k >= rough * 0.999)
    step = max(1.0, float(math.ceil(step))) if integers else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step + 0.0 for k in range(first, last + 1)]


def whole(data: Histogram) -> bool:
    return all(edge % 1 == 0.5 for edge in data.edges)


def describe(data: Histogram) -> str:
    top = max(range(len(data.counts)), key=lambda k: data.counts[k])
    low, high = data.edges[top], data.edges[top + 1]
    return (
        f"{sum(data.counts):,} values from {short(data.edges[0])} to {short(data.edges[-1])}, most "
        f"({data.counts[top]:,}) between {short(low)} and {short(high)}"
    )


def label_width(labels: Sequence[str]) -> int:
    return 18 + 7 * max(map(len, labels))


def short(value: float) -> str:
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{sign}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def box(x: float, y: float, wide: float, high: float, kind: str, shade: float = 1.0) -> str:
    opacity = f' fill-opacity="{shade:.2f}"' if shade < 1 else ""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}"'
    return f'<rect class="{kind}" {place}{opacity}/>'


def line(x: float, y: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def text(x: float, y: float, words: str, anchor: str, full: str = "") -> str:
    """`full` is told where the mouse rests, if it is not what stands there."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    more = f"<title>{escape(full)}</title>" if full not in ("", words) else ""
    return f"<text {place}>{more}{escape(words)}</text>"
