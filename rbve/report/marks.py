"""Parts of Vega-Lite specifications: axes, channels, layers, views. Their fields are of tidy rows.

A figure is made of them like this (rbve/report/figure.py):

    x, y = measure("x", "updates"), measure("y", "return")
    encoding = {"x": x, "y": y, "color": colours({"R-BVE": "#D62410"})}
    layers = [rule(4.0, "y", y), layer("line", encoding), layer("point", encoding, name="points")]
    Figure(name, title, note, view(layers), rows, {"series": "series", "x": "updates", ...})
"""

import copy
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from rbve.report.figure import Row, Spec, minus

Scale = Literal["linear", "log", "symlog", "category"]  # symlog: a log axis that begins at 0

_MAX_DECADES = 33  # from _SMALL to the 10³⁰ that values not finite count as
_SMALL = -3  # log₁₀: errors below a thousandth are as good as 0, and their ups and downs no news
_SIGNED_SMALL = -2  # of both signs, lest the way through 0 takes all the room
# 20,000 as 20k; small numbers as they are.
_LABEL = (
    "abs(datum.value) >= 1e15 || (datum.value != 0 && abs(datum.value) < 1e-4) ? "
    "format(datum.value, '.2~e') : "
    "format(datum.value, abs(datum.value) >= 1000 ? '~s' : '~r')"
)
_SHOWN = {"filter": "!isValid(datum.series) || indexof(hidden, datum.series) < 0"}
HEIGHT = 220  # pixels of a view of lines
STEP = 23  # pixels of a row


class Axis:
    """Range and ticks where Vega would label badly; `pad`: room at both ends of a linear axis."""

    def __init__(self, values: Sequence[float], scale: Scale, pad: float = 0.05) -> None:
        self.kind = scale
        self.ticks: list[float] | None = None  # None: Vega's choice
        self.label = _power
        self.threshold = 1.0
        if scale == "log":
            known = [math.log10(value) for value in values if value > 0] or [0.0, 1.0]
            room = 0.07 * (max(known) - min(known)) or 0.5
            low, high = max(min(known) - room, -307), min(max(known) + room, 307)
            self.low, self.high = 10.0**low, 10.0**high
            first, last = math.ceil(low), math.floor(high)
            if last > first:  # powers of ten, at most seven
                step = math.ceil((last - first) / 6)
                self.ticks = [10.0**k for k in range(first, last + 1, step)]
        elif scale == "symlog":
            self.threshold, ticks = symlog(values)
            self.low, self.high = -self.edge(-ticks[0]), self.edge(ticks[-1])
            gap = 0.06 * (self.at(self.high) - self.at(self.low))
            self.ticks = [tick for tick in ticks if not 0 < abs(self.at(tick)) < gap]
        else:
            low, high = min(values, default=0.0), max(values, default=1.0)
            flat = high - low <= 1e-9 * max(abs(low), abs(high))
            room = (0.1 * abs(high) or 0.5) if flat else pad * (high - low)
            self.low, self.high = low - room, high + room

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

    def label_each(self, values: Iterable[float]) -> None:
        """Label a few values themselves, as far as their labels stay apart."""
        kept: list[float] = []
        for value in sorted(values, reverse=True):
            if not kept or self.share(kept[-1]) - self.share(value) >= 0.1:
                kept.append(value)
        self.ticks, self.label = kept[::-1], thousands


def symlog(values: Sequence[float]) -> tuple[float, list[float]]:
    """Where the axis becomes logarithmic, and at most nine ticks, ascending."""
    sizes = [abs(value) for value in values if value] or [1.0]
    low, high = -min(values, default=0.0), max(values, default=0.0)
    least = _SIGNED_SMALL if low > 0 else _SMALL
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


def _power(value: float) -> str:
    """1e4: superscripts are not in every font."""
    exponent = round(math.log10(abs(value))) if value else 0
    return minus(f"{value:g}" if -2 <= exponent <= 3 else f"{'-' if value < 0 else ''}1e{exponent}")


def measure(
    field: str, title: str = "", *, axis: Axis | None = None, grid: bool = True, **scale: Any
) -> Spec:
    """Channel of numbers. `axis` fixes its range and labels; `scale`: Vega-Lite's options."""
    axis_spec: Spec = {"grid": grid, "title": title or None, "labelExpr": _LABEL, "tickCount": 5}
    scale = {"nice": False, **scale}
    if axis is None:
        scale = {"zero": False, "padding": 8, **scale}
    else:
        scale |= {"type": axis.kind} if axis.kind in ("log", "symlog") else {}
        scale |= {"constant": axis.threshold} if axis.kind == "symlog" else {}
        scale["domain"] = [axis.low, axis.high]
    if axis is not None and axis.ticks is not None:
        labels, ticks = json.dumps([axis.label(each) for each in axis.ticks]), axis.ticks
        del axis_spec["tickCount"]  # with a count Vega would leave some of them out
        axis_spec |= {"labelExpr": f"{labels}[indexof({json.dumps(ticks)}, datum.value)]"}
        axis_spec["values"] = ticks
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis_spec}


def category(field: str, names: Sequence[str], title: str = "", **axis: Any) -> Spec:
    """Channel of places in `names`, which label them; places without rows are left out.

    Words would end up in Vega's expressions, which take only some of them.
    """
    axis_spec: Spec = {"title": title or None, "grid": False, "labelOverlap": False, **axis}
    axis_spec["labelExpr"] = f"{json.dumps(list(names))}[datum.value]"
    return {"field": field, "type": "ordinal", "axis": axis_spec}


def colours(by_name: Mapping[str, Any], field: str = "series", legend: Spec | None = None) -> Spec:
    """Channel that gives every name its colour (or dashes); `legend`: of pictures."""
    scale = {"domain": list(by_name), "range": list(by_name.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": legend}


def layer(
    mark: str | Mapping[str, Any],
    encoding: Mapping[str, Any],
    rows: Iterable[Row] | None = None,
    where: Any = None,
    name: str = "",
) -> Spec:
    """`rows`: data of its own; `where`: a Vega-Lite filter; `name`: "points..." to be found."""
    unit: Spec = {"name": name} if name else {}
    unit |= {"mark": mark if isinstance(mark, str) else dict(mark), "encoding": dict(encoding)}
    if rows is not None:
        unit |= {"data": {"values": [dict(row) for row in rows]}, "transform": [_SHOWN]}
    if where is not None:
        unit["transform"] = [*unit.get("transform", []), {"filter": where}]
    return unit


def interval(x: Spec, y: Spec, colour: Spec, along: str = "y", where: Any = None) -> Spec:
    """A bar from `low` to `high` along one axis."""
    ends = {along: {**(x if along == "x" else y), "field": "low"}, f"{along}2": {"field": "high"}}
    mark = {"type": "rule", "strokeWidth": 2, "opacity": 0.75, "strokeCap": "round"}
    return layer(mark, {"x": x, "y": y, **ends, "color": colour}, where=where)


def text(encoding: Mapping[str, Any], rows: Iterable[Row] | None = None, **style: Any) -> Spec:
    return layer({"type": "text", **style}, encoding, rows)


def rule(at: float, along: str, channel: Spec, **style: Any) -> Spec:
    """A thin line across the view at a value of the axis `along`."""
    mark = {"type": "rule", "strokeDash": [1.5, 2.5], **style}
    plain = {key: value for key, value in channel.items() if key in ("type", "scale", "axis")}
    return layer(mark, {along: {**plain, "field": "value"}}, [{"value": at}])


def view(
    layers: Sequence[Spec],
    title: str | Sequence[str] = "",
    *,
    width: int = 560,
    height: int | Spec = HEIGHT,
    where: Any = None,
    above: int = 8,
) -> Spec:
    """One panel. `where`: rows it draws; `above`: pixels between title and drawing."""
    chosen = [{"filter": where}] if where is not None else []
    words = {"title": {"text": title, "offset": above}} if title else {}
    size = {"width": width, "height": height}
    return {**size, "transform": [*chosen, _SHOWN], **words, "layer": list(layers)}


def side_by_side(views: Sequence[Spec], columns: int = 3) -> Spec:
    """Views of one figure; their legends are one."""
    if len(views) == 1:
        return views[0]
    named = copy.deepcopy(list(views))
    for index, each in enumerate(named):  # Vega-Lite mixes up views whose layers share a name
        for own in each["layer"]:
            own |= {"name": f"{own['name']}-{index}"} if "name" in own else {}
    shared = {"color": "shared", "strokeDash": "shared", "fill": "shared"}
    return {"concat": named, "columns": columns, "resolve": {"scale": shared}}
