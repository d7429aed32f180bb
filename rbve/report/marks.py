"""Parts of Vega-Lite specifications: channels, layers, views. Their fields are those of tidy rows.

A figure is made of them like this (rbve/report/figure.py):

    x, y = measure("x", "updates"), measure("y", "return")
    look = {"x": x, "y": y, "color": colours({"R-BVE": "#D62410"})}
    layers = [rule(4.0, "y", y), layer("line", look), layer("point", look, name="points")]
    Figure(name, title, note, view(layers), rows, {"series": "series", "x": "updates", ...})
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rbve.report.axis import LABEL, Ticks
from rbve.report.figure import Row, Spec

_SHOWN = {"filter": "!isValid(datum.series) || indexof(hidden, datum.series) < 0"}
HEIGHT = 220  # pixels of a view of lines
STEP = 23  # pixels of a row


def measure(
    field: str, title: str = "", *, ticks: Ticks | None = None, grid: bool = True, **scale: Any
) -> Spec:
    """Channel of numbers. `ticks` fixes its range and labels; `scale`: Vega-Lite's options."""
    axis: Spec = {"grid": grid, "title": title or None, "labelExpr": LABEL, "tickCount": 5}
    known: Spec = {"nice": False, **scale}
    if ticks is None:
        known = {"zero": False, "padding": 8, **known}
    else:
        known |= ticks.scale
        axis |= ticks.axis
        if "values" in ticks.axis:  # with a count Vega would leave some of them out
            del axis["tickCount"]
    return {"field": field, "type": "quantitative", "scale": known, "axis": axis}


def category(field: str, names: Sequence[str], title: str = "", **axis: Any) -> Spec:
    """Channel of places in `names`, which label them; places without rows are left out.

    Words would end up in Vega's expressions, which take only some of them.
    """
    look: Spec = {"title": title or None, "grid": False, "labelOverlap": False, **axis}
    look["labelExpr"] = f"{json.dumps(list(names))}[datum.value]"
    return {"field": field, "type": "ordinal", "axis": look}


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
    found: Spec = {"name": name} if name else {}
    found |= {"mark": mark if isinstance(mark, str) else dict(mark), "encoding": dict(encoding)}
    if rows is not None:
        found["data"] = {"values": [dict(row) for row in rows]}
        found["transform"] = [_SHOWN]
    if where is not None:
        found["transform"] = [*found.get("transform", []), {"filter": where}]
    return found


def interval(x: Spec, y: Spec, colour: Spec, along: str = "y", where: Any = None) -> Spec:
    """A bar from `low` to `high` along one axis."""
    ends = {along: {**(x if along == "x" else y), "field": "low"}, f"{along}2": {"field": "high"}}
    mark = {"type": "rule", "strokeWidth": 2, "opacity": 0.75, "strokeCap": "round"}
    return layer(mark, {"x": x, "y": y, **ends, "color": colour}, where=where)


def text(encoding: Mapping[str, Any], rows: Iterable[Row] | None = None, **look: Any) -> Spec:
    return layer({"type": "text", **look}, encoding, rows)


def rule(at: float, along: str, channel: Spec, **look: Any) -> Spec:
    """A thin line across the view at a value of the axis `along`."""
    mark = {"type": "rule", "strokeDash": [1.5, 2.5], **look}
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
