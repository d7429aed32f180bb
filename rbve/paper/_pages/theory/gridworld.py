"""A grid world: values as colours, the policy as arrows; how often random layouts agree."""

from collections.abc import Mapping, Sequence
from typing import Any

from rbve.paper._pages.measures import span
from rbve.paper._pages.theory import share
from rbve.paper.theory import keyed
from rbve.report import marks
from rbve.report.chart import Chart, Panel, Series
from rbve.report.figure import Figure, Spec, minus
from rbve.report.table import number
from rbve.rows import Run

_ACTIONS = ("left", "right", "up", "down")
_ANGLES = (270, 90, 0, 180)  # of ACTIONS, clockwise from up
_POLICIES = {"random": "random", "one step": "one greedy step", "optimal": "optimal"}
_FIELDS = ("policy", "row", "column", "cell", "value", "action")
_SHARES = {
    "reaches": ("one step reaches the goal", "#56B4E9", 0),
    "close": ("and has ≥ 95% of the optimal value", "#0072B2", 1),
    "optimal": ("and is optimal from the start", "#332288", 2),
}
_LOSS = "#D62410"
_CELL = 27  # pixels


def answer(runs: Sequence[Run]) -> str:
    drawn, shown = _drawn(runs), [run for run in runs if "policy" in run.spec]
    shares = "; ".join(
        f"{run.last('close'):.0%} where a trap costs {-run.spec['trap']:g}" for run in drawn
    )
    count = drawn[0].spec["layouts"] if drawn else 0
    near = f"{runs[0].facts.get('near', 0.95):.0%}"
    values = ", ".join(f"{run.spec['policy']} {number(run.last('start'), 2)}" for run in shown)
    return (
        f"Value at the start of the layout shown: {values}. The layout was chosen to show this. Of "
        f"{count:,} random layouts, one greedy step has at least "
        f"{near} of the optimal value in {shares}."
    )


def figures(runs: Sequence[Run]) -> list[Figure | Chart]:
    return [policies(runs), *layouts(runs)]


def policies(runs: Sequence[Run]) -> Figure:
    """A panel per policy."""
    own = {run.spec["policy"]: run for run in runs if "policy" in run.spec}
    first, one = own["random"], own["one step"]
    trap = minus(f"{first.spec['trap']:g}")
    optimal = keyed(own["optimal"], "value/")
    rows = [row for name in _POLICIES for row in _cells(own[name], optimal)]
    values = [row["value"] for row in rows]
    colour = {
        "field": "value",
        "type": "quantitative",
        "scale": {"scheme": "viridis", "domain": [min(values), max(values)]},
        "legend": {"title": "value", "gradientLength": 140, "tickCount": 4},
    }
    return Figure(
        name="theory-gridworld-policies",
        title="Random, one greedy step, optimal",
        note=f"Our own layout; start upper left, γ = {first.spec['gamma']:g}; a step into T pays "
        f"{trap}, into G {first.spec['goal']:+g} and ends. Colour: "
        f"exact value of the policy shown. Framed: the {one.last('below_optimal'):.0f} of "
        f"{len(optimal) - 1} cells where one step is below optimal (at worst by "
        f"{one.last('worst/share'):.0%}). No randomness: n = 1 layout.",
        spec=marks.side_by_side([_world(own[name], name, colour) for name in _POLICIES]),
        rows=rows,
        columns={name: name for name in _FIELDS},
    )


def _cells(run: Run, optimal: Mapping[str, float]) -> list[dict[str, Any]]:
    """In reading order."""
    name, actions, rows = run.spec["policy"], keyed(run, "action/"), []
    for key, value in keyed(run, "value/").items():
        row, column = map(int, key.split("/"))
        cell, action = run.spec["layout"][row][column], int(actions[key])
        known = (name, row, column, cell, value, _ACTIONS[action] if action >= 0 else "")
        drawn = {
            "sign": "" if cell == "." else cell,
            "angle": _ANGLES[action] if action >= 0 else None,
            "framed": name == "one step" and optimal[key] - value > 1e-9,
        }
        rows.append(dict(zip(_FIELDS, known, strict=True)) | drawn)
    return rows


def _world(run: Run, name: str, colour: Spec) -> Spec:
    at = {
        axis: {"field": field, "type": "ordinal", "axis": None}
        for axis, field in (("x", "column"), ("y", "row"))
    }
    low, high = colour["scale"]["domain"]
    # Named colours stay as they are on a dark page, as do those of the cells.
    pale = f"datum.value < {low + 0.6 * (high - low)} && datum.cell != 'G'"
    ink = {"color": {"condition": {"test": pale, "value": "white"}, "value": "black"}}
    goal = {"type": "rect", "fill": "white", "stroke": "black"}
    frame = {"type": "rect", "fill": None, "stroke": _LOSS, "strokeWidth": 1.6}
    arrow = {"type": "point", "shape": "arrow", "size": 130, "filled": True, "opacity": 1}
    turned = {"angle": {"field": "angle", "type": "quantitative", "scale": None}}
    start, mean = (number(run.last(metric), 2) for metric in ("start", "mean"))
    layout = run.spec["layout"]
    return marks.view(
        [
            marks.layer({"type": "rect"}, {**at, "fill": colour}, name="points"),
            marks.layer(goal, at, where="datum.cell == 'G'"),
            marks.layer(
                {**frame, "width": _CELL - 3, "height": _CELL - 3}, at, where="datum.framed"
            ),
            marks.layer(arrow, {**at, **ink, **turned}, where="isValid(datum.angle)"),
            marks.text({**at, **ink, "text": {"field": "sign"}}, dx=-9, dy=-8, fontSize=9),
        ],
        [_POLICIES[name], f"start {start}, mean of cells {mean}"],
        width=_CELL * len(layout[0]),
        height=_CELL * len(layout),
        where={"field": "policy", "equal": name},
    )


def _drawn(runs: Sequence[Run]) -> list[Run]:
    """Those of random layouts, the cheapest traps first."""
    return sorted((run for run in runs if "layouts" in run.spec), key=lambda r: -r.spec["trap"])


def layouts(runs: Sequence[Run]) -> list[Chart]:
    """How often random layouts show the pattern, by what a trap costs."""
    own = _drawn(runs)
    if not own:
        return []
    count = span(row.n for run in own for row in run.rows)
    rows = [(minus(f"{run.spec['trap']:g}"), row) for run in own for row in run.rows]
    points = {
        metric: tuple(share(x, r.value, r.value * r.n, r.n) for x, r in rows if r.metric == metric)
        for metric in _SHARES
    }
    series = tuple(
        Series(name, colour, points[metric], dash=dash)
        for metric, (name, colour, dash) in _SHARES.items()
    )
    note = (
        f"n = {count} random layouts per cost, a trap in {own[0].spec['trap_share']:.0%} of "
        "cells, among those whose optimal policy reaches the goal; bar: 95% Wilson interval. Where "
        "it does not reach the goal, one greedy step hides from traps and collects nothing."
    )
    words = ("theory-gridworld-layouts", "How often one greedy step is close to optimal", note)
    x_label = f"reward of a trap (the goal pays {own[0].spec['goal']:+g})"
    panels = (Panel("", series),)
    return [Chart(*words, "lines", x_label, "share of layouts", panels, "category")]
