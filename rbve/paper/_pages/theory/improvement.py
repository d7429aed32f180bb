"""Where one greedy step is optimal: families of processes, and how clear the right action is."""

from collections.abc import Sequence
from typing import Any

from rbve.paper._pages.theory import wilson
from rbve.report import marks
from rbve.report.chart import Chart, Panel, Point, Series
from rbve.report.figure import INK, Figure, Spec
from rbve.report.labels import ramp
from rbve.report.table import number
from rbve.rows import Run

_HOLDS, _FAILS = "#0072B2", "#D62410"
_KINDS = {
    "chain": "Chain (lemma 2)",
    "grid": "Grid, its analogue in two dimensions",
    "end": "Reward at the end (lemma 1)",
}
# fail: for some way to break ties; low, high: 95% interval, of families drawn at random.
_FIELDS = (
    "family", "premise_broken", "processes", "fail", "fail_for_all_ties", "share", "low", "high",
    "margin",
)  # fmt: skip
# Columns of numbers beside the dots: field -> heading, right end on the axis of shares.
_END = 1.35
_TEXTS = {
    "counted": ("fail, of n", 0.86),
    "ties": ("fail for all ties", 1.12),
    "lead": ("margin", _END),
}
# Families that are judged by size: slug, title, unit.
_SIZED = {
    "chain": ("chain", "chain", "states of the chain"),
    "grid/corner": ("grid", "square grid", "cells of a side of the grid"),
}
_LEAD_WORDS = (
    "Lead: smallest over states of [best Q of an optimal action − best Q of another], on the right "
    "as a share of the larger; Q of the uniform behaviour. Exact, one process per point, no "
    "randomness. Above 0 everywhere, so one greedy step is optimal; but it shrinks with the "
    "distance to the reward, so estimated values need not show it."
)


def answer(runs: Sequence[Run]) -> str:
    checked = [(str(r.facts["family"]), r.last("mdps"), r.last("violations")) for r in runs]
    held = [each for each in checked if each[2] == 0]
    broken = [each for each in checked if each[2]]
    words = "; ".join(f"{name} {bad:,.0f} of {count:,.0f}" for name, count, bad in broken)
    return (
        f"One greedy step is optimal in all {sum(each[1] or 0 for each in held):,.0f} processes of "
        f"{len(held)} families: {'; '.join(each[0] for each in held)}. It fails for some way to "
        f"break ties in {len(broken)} families: {words}."
    )


def figures(runs: Sequence[Run]) -> list[Figure | Chart]:
    return [families(runs), *margins(runs)]


def families(runs: Sequence[Run]) -> Figure:
    """A row per family: share of processes where one greedy step is not optimal."""
    rows: list[dict[str, Any]] = []
    lines: list[str] = []  # headings and families from the top
    for kind, heading in _KINDS.items():
        own = [run for run in runs if run.spec["family"].split("/")[0] == kind]
        found = [_family(run) for run in sorted(own, key=lambda run: (_broken(run), run.job))]
        rows += [row | {"place": len(lines) + k} for k, row in enumerate(found, 1)]
        lines += [heading, *(row["family"] for row in found)]
    return Figure(
        name="theory-improvement-families",
        title="Where one greedy step is optimal",
        note="Values in rational numbers, without rounding. Dot: share of processes where one "
        "greedy step is not optimal for some way to break ties; bar: 95% Wilson interval, for "
        "families drawn at random; n: processes. Margin: smallest lead of an optimal action over "
        "all others, in values of the behaviour. Red: a premise is broken, or walls added.",
        spec=_families_view(rows, lines),
        rows=rows,
        columns={name: name for name in _FIELDS},
        wide=True,
    )


def _family(run: Run) -> dict[str, Any]:
    n, fails, ties = (int(run.last(name) or 0) for name in ("mdps", "violations", "violations/any"))
    low, high = wilson(fails, n) if "seed" in run.spec else (None, None)
    margin = run.last("margin")
    known = (str(run.facts["family"]), _broken(run), n, fails, ties, fails / n, low, high, margin)
    texts = {"counted": f"{fails:,} of {n:,}", "ties": f"{ties:,}", "lead": number(margin)}
    return dict(zip(_FIELDS, known, strict=True)) | texts


def _broken(run: Run) -> bool:
    """Whether the family leaves the lemma's ground."""
    name = run.spec["family"]
    return bool(run.spec.get("broken")) or name == "chain/left-pays" or "walls" in name


def _families_view(rows: Sequence[dict[str, Any]], lines: Sequence[str]) -> Spec:
    broken = [row["place"] for row in rows if row["premise_broken"]]
    headings = [lines.index(heading) for heading in _KINDS.values()]
    heading, red = (f"indexof({places}, datum.value) >= 0" for places in (headings, broken))
    y = marks.category("place", lines, grid=True, domain=False, ticks=False, labelLimit=290)
    y["scale"] = {"domain": list(range(len(lines)))}
    y["axis"] |= {
        "labelFontWeight": _either(heading, "bold", "normal"),
        "labelColor": {
            "condition": [{"test": heading, "value": INK}, {"test": red, "value": _FAILS}],
            "value": _HOLDS,
        },
    }
    room: Spec = {"domain": [-0.02, _END], "padding": 0}  # that of TEXTS too
    x = marks.measure("share", "processes where it is not optimal", grid=False, **room)
    x["axis"] |= {"labelExpr": "format(datum.value, '.0%')", "values": [0, 0.2, 0.4, 0.6]}
    x["axis"] |= {"titleAnchor": "start", "domain": False}
    colour = _either("datum.premise_broken", _FAILS, _HOLDS)
    dots = {"type": "circle", "size": 60, "opacity": 1}
    layers = [
        marks.interval(x, y, colour, along="x", where="isValid(datum.low)"),
        marks.layer(dots, {"x": x, "y": y, "color": colour}, name="points"),
    ]
    for field, (words, end) in _TEXTS.items():
        at = {key: x[key] for key in ("type", "scale", "axis")} | {"datum": end}
        layers += [
            marks.text({"x": at, "y": y, "text": {"field": field}}, align="right"),
            marks.text({"x": at, "y": {"value": 0}, "text": {"value": words}}, [{}], align="right"),
        ]
    return marks.view(layers, width=560, height={"step": 21})


def _either(test: str, then: str, other: str) -> Spec:
    return {"condition": {"test": test, "value": then}, "value": other}


def margins(runs: Sequence[Run]) -> list[Chart]:
    """Smallest lead of the right action by size of the chain and of the grid, a line per γ."""
    known = {run.spec["family"]: run for run in runs}
    return [
        Chart(
            name=f"theory-improvement-{slug}",
            title=f"How clearly one greedy step is right: {title}",
            note=f"{_LEAD_WORDS} γ: discount.",
            kind="lines",
            x_label=unit,
            y_label="lead of the right action",
            panels=tuple(
                Panel(words, _leads(known[family], metric))
                for metric, words in (("margin", "absolute"), ("margin/share", "as a share"))
            ),
            y_scale="log",
        )
        for family, (slug, title, unit) in _SIZED.items()
        if family in known
    ]


def _leads(run: Run, metric: str) -> tuple[Series, ...]:
    gammas = run.spec["gammas"]
    shades = {g: ramp(k / max(1, len(gammas) - 1)) for k, g in enumerate(sorted(gammas))}
    names = {g: f"{metric}/gamma={g:g}" for g in gammas}
    points = {g: [Point(r.step, r.value) for r in run.rows if r.metric == names[g]] for g in gammas}
    return tuple(Series(f"γ = {g:g}", shades[g], tuple(points[g])) for g in gammas)
