"""Figures of the theory experiments (rbve/paper/theory), from their rows alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from rbve.paper.pages.theory_canvas import (
    as_csv,
    finished,
    keyed,
    legend,
    panels,
    series,
    share_scale,
    wilson,
)
from rbve.paper.pages.theory_grids import families, layouts, margins, policies
from rbve.report import statistics
from rbve.report.canvas import INK, style
from rbve.report.chart import Chart, Panel, Point, Series
from rbve.report.chart_spec import figure_of
from rbve.report.figure import png
from rbve.report.labels import METHODS
from rbve.report.page import Picture
from rbve.rows import Run

OPTIMISERS = {"sgd": "SGD", "momentum": "momentum", "rmsprop": "RMSProp", "adam": "Adam"}
TOP = 1e4  # of the axis of values
Q_COLOUR, BVE_COLOUR = METHODS["dqn"][1], METHODS["bve"][1]
# Name, colour, dashes of a line by (method, end).
LINES = {
    ("q", "logged"): ("Q-learning", Q_COLOUR, 0),
    ("bve", "bootstrap"): ("BVE bootstrapping at s3", "#882255", 1),
    ("bve", "logged"): ("BVE as logged", BVE_COLOUR, 0),
    ("bve", "terminal"): ("BVE, s3 taken as the end", "#777777", 2),
}
WAYS = {
    ("fixed", "all"): "first layer fixed",
    ("learned", "all"): "first layer learned",
    ("fixed", "one"): "one transition per update",
}
PICKED = "#D62410"
MARKS = [("observed action", INK, "o"), ("unobserved action", Q_COLOUR, ".")]
MARKS += [("picked by the maximum", PICKED, "*")]
FITS = {"mlp": ("network", Q_COLOUR), "cubic": ("cubic", "#AA4499")}


def divergence(runs: Sequence[Run]) -> tuple[Chart, ...]:
    """Q(s2, a2) over updates: a row per optimiser, a column per way to learn."""
    plain = [run for run in runs if run.spec["w"] == 1 and run.spec["factor"] == 1]
    draws = len({run.spec["seed"] for run in plain if way(run) == ("fixed", "one")})
    note = (
        "Value learned for (s2, a2), whose true value is 0, from w = 1; a line ends where it "
        f"passes 10⁴. One transition per update: mean of n = {draws} draws, band: 95% Student "
        "interval; else no randomness. Bootstrapping at s3, where the log holds no action, makes "
        "BVE escape like Q-learning (lines coincide)." + bounded_words(runs)
    )
    chart = Chart(
        name="theory-divergence-values",
        title="Escaping to infinity on three transitions",
        note=note,
        kind="lines",
        x_label="updates",
        y_label="value of (s2, a2)",
        panels=tuple(
            Panel(f"{label}, {words}", escapes([r for r in plain if way(r) == own], optimiser))
            for optimiser, label in OPTIMISERS.items()
            for own, words in WAYS.items()
        ),
        x_scale="log",
        y_scale="symlog",
        same_y=True,
    )
    return (chart,)


def bounded_words(runs: Sequence[Run]) -> str:
    """Bounded is not correct: what BVE prefers in s1 from another start."""
    found = next((r for r in runs if r.spec["method"] == "bve" and r.spec["w"] != 1), None)
    if found is None or found.last("greedy/s1") == 0:
        return ""
    return (
        " BVE as logged keeps the value it starts from: bounded, not correct "
        f"(from w = {found.spec['w']:g} it prefers a1 to the optimal a0)."
    )


def way(run: Run) -> tuple[str, str]:
    return run.spec["first_layer"], run.spec["batch"]


def escapes(runs: Sequence[Run], optimiser: str) -> tuple[Series, ...]:
    found = []
    for (method, end), (name, colour, dash) in LINES.items():
        wanted = (optimiser, method, end)
        own = [r for r in runs if (r.spec["optimiser"], r.spec["method"], r.spec["end"]) == wanted]
        if own:
            found.append(Series(name, colour, escape(own), dash=dash))
    return tuple(found)


def escape(runs: Sequence[Run]) -> tuple[Point, ...]:
    """Means over draws up to where they pass the top; update 0 has no place on a log axis."""
    by_step: dict[int, list[float]] = {}
    for run in runs:
        for step, value in series(run, "q/s2/a2"):
            by_step.setdefault(step, []).append(value)
    points: list[Point] = []
    for step in sorted(by_step.keys() - {0}):
        values = np.clip(by_step[step], -TOP, TOP)
        points.append(point(step, statistics.estimate(values)))
        if abs(points[-1].y) >= TOP:
            break
    return tuple(points)


def point(x: float, found: statistics.Estimate) -> Point:
    return Point(x, found.mean, found.low, found.high, found.n)


def fits(runs: Sequence[Run]) -> Picture:
    """The first fits as they came."""
    shown = next(
        run for run in runs if run.spec["approximator"] == "mlp" and keyed(run, "example/0/q/")
    )
    note = (
        f"Network fitted to {shown.spec['observed']} of {shown.spec['actions']} actions, the first "
        "n = 3 random states as they came. Red line: error at the maximum; dotted: true maximum. "
        "σ: deviation of Q over the actions."
    )
    with style():
        row = panels(3, width=2.0, height=1.9, gap=0.3)
        for index, axes in enumerate(row):
            fit_panel(axes, fit(shown, index))
        row[0].set_ylabel("value, σ")
        share_scale(row)
        legend(row[0], [("true Q", INK), ("fitted", Q_COLOUR)], MARKS, above=0.6)
        words = ("theory-extrapolation-fits", "Over-estimation from extrapolation", note)
        return finished(row[0], words, fit_numbers(shown), above=2.0)


class Fit(NamedTuple):
    """Of one state: by action."""

    a: np.ndarray
    q: np.ndarray
    fit: np.ndarray
    observed: np.ndarray


def fit(run: Run, index: int) -> Fit:
    return Fit(
        *(
            np.array(list(keyed(run, f"example/{index}/{name}/").values()))
            for name in ("a", "q", "fit", "observed")
        )
    )


def fit_numbers(run: Run) -> bytes:
    rows = [
        (state, a, q, fitted, int(observed), int(k == own.fit.argmax()))
        for state in range(3)
        for own in [fit(run, state)]
        for k, (a, q, fitted, observed) in enumerate(zip(*own, strict=True))
    ]
    return as_csv(("state", "action", "true_q", "fitted", "observed", "picked"), rows)


def fit_panel(axes: Axes, own: Fit) -> None:
    a, q, fitted, seen = own
    axes.plot(a, q, color=INK, linewidth=1.2)
    axes.plot(a, fitted, color=Q_COLOUR, linewidth=1.8)
    axes.plot(a[seen == 0], fitted[seen == 0], ".", color=Q_COLOUR, markersize=3.5)
    axes.plot(a[seen == 1], q[seen == 1], "o", color=INK, markersize=5, zorder=4)
    best = int(fitted.argmax())
    axes.plot([a[best], a[best]], [q[best], fitted[best]], color=PICKED, linewidth=1.6)
    axes.plot(a[best], fitted[best], "*", color=PICKED, markersize=12, zorder=3)
    axes.axhline(q.max(), color="#9a9a9a", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    axes.set_xlabel("action")
    axes.set_xticks([-1, 0, 1])
    axes.margins(y=0.12)


def extrapolation(runs: Sequence[Run]) -> tuple[Chart, ...]:
    """Shares and errors by the number of observed actions."""
    n = runs[0].spec["seeds"][1]
    states = f"n = {n} random states each"
    clearly = f"by > {runs[0].facts['clearly']:g} σ"
    shares = Chart(
        name="theory-extrapolation-shares",
        title="How often an unobserved maximum lies above the true one",
        note=f"Share of {states}; bar: 95% Wilson interval. σ: deviation of Q over the actions.",
        kind="lines",
        x_label="observed actions",
        y_label="share of states",
        panels=(
            Panel(
                "",
                by_fit(runs, {"exceeds": "at all", "exceeds/clearly": clearly}, share_point),
            ),
        ),
        x_scale="log",
    )
    named = {"chosen_error": "at the maximum", "unchosen_error": "all unobserved"}
    errors = Chart(
        name="theory-extrapolation-errors",
        title="Mean error of the fit, fitted − true",
        note=f"Mean over {states}, in σ; bar: 95% Student interval.",
        kind="lines",
        x_label="observed actions",
        y_label="fitted − true, σ",
        panels=(Panel("", by_fit(runs, named, mean_point)),),
        x_scale="log",
    )
    return shares, errors


def by_fit(
    runs: Sequence[Run],
    metrics: dict[str, str],
    place: Callable[[int, list[float]], Point],
) -> tuple[Series, ...]:
    """A line per approximator and metric."""
    return tuple(
        Series(
            f"{label}, {words}",
            colour,
            tuple(place(x, values) for x, values in by_observed(runs, name, metric)),
            dash=dash,
        )
        for name, (label, colour) in FITS.items()
        for dash, (metric, words) in enumerate(metrics.items())
    )


def share_point(x: int, hits: list[float]) -> Point:
    return Point(x, float(np.mean(hits)), *wilson(sum(hits), len(hits)), len(hits))


def mean_point(x: int, values: list[float]) -> Point:
    return point(x, statistics.estimate(values))


def by_observed(runs: Sequence[Run], name: str, metric: str) -> list[tuple[int, list[float]]]:
    """(observed actions, one value per state)."""
    own = [run for run in runs if run.spec["approximator"] == name]
    own.sort(key=lambda run: run.spec["observed"])
    return [
        (run.spec["observed"], list(keyed(run, f"{metric}/", numbers=True).values())) for run in own
    ]


# By experiment.
PICTURES: dict[str, Callable[[Sequence[Run]], Picture]] = {
    "extrapolation": fits,
    "improvement": families,
    "gridworld": policies,
}
CHARTS: dict[str, Callable[[Sequence[Run]], tuple[Chart, ...]]] = {
    "divergence": divergence,
    "extrapolation": extrapolation,
    "improvement": margins,
    "gridworld": layouts,
}


def pictures(experiment: str, runs: Sequence[Run]) -> tuple[Picture, ...]:
    return (PICTURES[experiment](runs),) if experiment in PICTURES else ()


def charts(experiment: str, runs: Sequence[Run]) -> tuple[Chart, ...]:
    return CHARTS[experiment](runs) if experiment in CHARTS else ()


class Drawing(NamedTuple):
    kind: str  # for file names
    png: bytes


def draw(experiment: str, runs: Sequence[Run]) -> list[Drawing]:
    """All figures of a theory experiment, as files."""
    found = [(each.name, each.files["png"]) for each in pictures(experiment, runs)]
    found += [(each.name, png(figure_of(each))) for each in charts(experiment, runs)]
    return [Drawing(name.removeprefix("theory-"), png) for name, png in found]
