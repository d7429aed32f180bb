"""Over-estimation from extrapolation: fits as they came, how often and by how much they err."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rbve.paper._pages.theory import estimated, share
from rbve.paper.theory import keyed, numbered
from rbve.report import marks
from rbve.report.chart import Chart, Panel, Point, Series
from rbve.report.figure import INK, Entry, Figure, Spec
from rbve.report.labels import METHODS
from rbve.rows import Run

_Q_COLOUR = METHODS["dqn"][1]
_PICKED = "#D62410"
_FITS = {"mlp": ("network", _Q_COLOUR), "cubic": ("cubic", "#AA4499")}
_LINES = {"true_q": ("true Q", INK), "fitted": ("fitted", _Q_COLOUR)}
_STATES = 3  # shown
_FIELDS = ("state", "action", "true_q", "fitted", "observed", "picked")
_STAR = "M0,-1L.22,-.31L.95,-.31L.36,.12L.59,.81L0,.38L-.59,.81L-.36,.12L-.95,-.31L-.22,-.31Z"


def answer(runs: Sequence[Run]) -> str:
    def mean(run: Run, metric: str) -> str:
        return f"{np.mean(list(numbered(run, f'{metric}/').values())):.0%}"

    parts = []
    for name, (words, _) in _FITS.items():
        own = [run for run in runs if run.spec["approximator"] == name]
        if own:
            few, many = (f(own, key=lambda run: run.spec["observed"]) for f in (min, max))
            parts.append(
                f"of a {words}'s fit to {few.spec['observed']} of {few.spec['actions']} actions "
                f"{mean(few, 'exceeds')} (by more than {few.facts['clearly']:g} σ: "
                f"{mean(few, 'exceeds/clearly')}), fitted to {many.spec['observed']} "
                f"{mean(many, 'exceeds')} ({mean(many, 'exceeds/clearly')})"
            )
    return (
        "How often the maximum lies at an unobserved action and above the true maximum: "
        + "; ".join(parts)
        + f" (n = {runs[0].spec['seeds'][1]} random states each)."
    )


def figures(runs: Sequence[Run]) -> list[Figure | Chart]:
    """The first fits as they came; shares and errors by the number of observed actions."""
    states = f"n = {runs[0].spec['seeds'][1]} random states each"
    clearly = f"by > {runs[0].facts['clearly']:g} σ"
    shares = {"exceeds": "at all", "exceeds/clearly": clearly}
    errors = {"chosen_error": "at the maximum", "unchosen_error": "all unobserved"}
    return [
        fits(runs),
        _chart(
            "shares",
            "How often an unobserved maximum lies above the true one",
            f"Share of {states}; bar: 95% Wilson interval. σ: deviation of Q over the actions.",
            "share of states",
            _by_fit(runs, shares, lambda x, v: share(x, float(np.mean(v)), sum(v), len(v))),
        ),
        _chart(
            "errors",
            "Mean error of the fit, fitted − true",
            f"Mean over {states}, in σ; bar: 95% Student interval.",
            "fitted − true, σ",
            _by_fit(runs, errors, estimated),
        ),
    ]


def _chart(name: str, title: str, note: str, label: str, series: tuple[Series, ...]) -> Chart:
    panels = (Panel("", series),)
    slug = f"theory-extrapolation-{name}"
    return Chart(slug, title, note, "lines", "observed actions", label, panels, x_scale="log")


def _by_fit(
    runs: Sequence[Run], metrics: dict[str, str], point: Callable[[int, list[float]], Point]
) -> tuple[Series, ...]:
    """A line per approximator and metric, a point per number of observed actions."""
    ordered = sorted(runs, key=lambda run: run.spec["observed"])

    def points(name: str, metric: str) -> tuple[Point, ...]:
        own = [run for run in ordered if run.spec["approximator"] == name]
        values = (list(numbered(run, f"{metric}/").values()) for run in own)
        return tuple(map(point, (run.spec["observed"] for run in own), values))

    return tuple(
        Series(f"{label}, {words}", colour, points(name, metric), dash=dash)
        for name, (label, colour) in _FITS.items()
        for dash, (metric, words) in enumerate(metrics.items())
    )


def fits(runs: Sequence[Run]) -> Figure:
    """A panel per state: true and fitted values of all actions."""
    shown = next(
        run for run in runs if run.spec["approximator"] == "mlp" and keyed(run, "example/0/q/")
    )
    rows = [row for state in range(_STATES) for row in _fit_rows(shown, state)]
    return Figure(
        name="theory-extrapolation-fits",
        title="Over-estimation from extrapolation",
        note=f"Network fitted to {shown.spec['observed']} of {shown.spec['actions']} actions, the "
        f"first n = {_STATES} random states as they came. Black dot: observed action; star: picked "
        "by the maximum; red line: its error; dotted: true maximum. σ: deviation of Q over the "
        "actions.",
        spec=marks.side_by_side([_fit_view(rows, state) for state in range(_STATES)]),
        rows=rows,
        columns={name: name for name in _FIELDS},
        legend=tuple(Entry(name, colour, line=True) for name, colour in _LINES.values()),
    )


def _fit_rows(run: Run, state: int) -> list[dict[str, float]]:
    a, q, fitted, observed = (
        list(keyed(run, f"example/{state}/{name}/").values())
        for name in ("a", "q", "fit", "observed")
    )
    picked = int(np.argmax(fitted))
    return [
        dict(zip(_FIELDS, (state, *values, int(seen), int(k == picked)), strict=True))
        for k, (*values, seen) in enumerate(zip(a, q, fitted, observed, strict=True))
    ]


def _fit_view(rows: Sequence[dict[str, float]], state: int) -> Spec:
    values = [row[name] for row in rows for name in _LINES]
    room = 0.06 * (max(values) - min(values))
    span: Spec = {"domain": [min(values) - room, max(values) + room]}
    x = marks.measure("action", "action", grid=False)
    x["axis"]["values"] = [-1, 0, 1]
    true_q, fitted = (marks.measure(name, "value, σ", grid=False, **span) for name in _LINES)
    look = {"orient": "top", "title": None, "symbolType": "stroke", "symbolSize": 250}
    colour = marks.colours(dict(_LINES.values()), legend={**look, "symbolStrokeWidth": 2.5})
    best = max(row["true_q"] for row in rows if row["state"] == state)

    def line(name: str, y: Spec, width: float) -> Spec:
        encoding = {"x": x, "y": y, "color": {**colour, "datum": name}}
        del encoding["color"]["field"]
        shown = f"indexof(hidden, '{name}') < 0"
        return marks.layer({"type": "line", "strokeWidth": width}, encoding, where=shown)

    def points(y: Spec, where: str, **look: Any) -> Spec:
        mark = {"type": "point", "filled": True, "opacity": 1, **look}
        name = f"points-{where.partition(' ')[0]}-{where[-1]}"
        return marks.layer(mark, {"x": x, "y": y}, where=f"datum.{where}", name=name)

    error = {"x": x, "y": true_q, "y2": {"field": "fitted"}, "color": {"value": _PICKED}}
    return marks.view(
        [
            marks.rule(best, "y", true_q),
            line("true Q", true_q, 1.2),
            line("fitted", fitted, 1.8),
            points(fitted, "observed == 0", size=9, color=_Q_COLOUR),
            marks.layer({"type": "rule", "strokeWidth": 1.6}, error, where="datum.picked == 1"),
            points(fitted, "picked == 1", size=330, color=_PICKED, shape=_STAR),
            points(true_q, "observed == 1", size=34, color=INK),
        ],
        f"state {state + 1}",
        width=225,
        height=190,
        where={"field": "state", "equal": state},
    )
