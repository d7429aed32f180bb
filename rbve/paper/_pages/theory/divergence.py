"""Escaping to infinity: values over updates, an optimiser and a way to learn per panel."""

from collections.abc import Sequence

import numpy as np

from rbve.paper._pages.gather import grouped
from rbve.paper._pages.theory import estimated
from rbve.report.chart import Chart, Panel, Point, Series
from rbve.report.figure import minus
from rbve.report.labels import METHODS
from rbve.rows import Run

_OPTIMISERS = {"sgd": "SGD", "momentum": "momentum", "rmsprop": "RMSProp", "adam": "Adam"}
TOP = 1e4  # of the axis of values
# Name, colour, dashes of a line by (method, end).
_LINES = {
    ("q", "logged"): ("Q-learning", METHODS["dqn"][1], 0),
    ("bve", "bootstrap"): ("BVE bootstrapping at s3", "#882255", 1),
    ("bve", "logged"): ("BVE as logged", METHODS["bve"][1], 0),
    ("bve", "terminal"): ("BVE, s3 taken as the end", "#777777", 2),
}
_WAYS = {
    ("fixed", "all"): "first layer fixed",
    ("learned", "all"): "first layer learned",
    ("fixed", "one"): "one transition per update",
}


def answer(runs: Sequence[Run]) -> str:
    plain = _plain(runs)

    def escaped(method: str, end: str) -> str:
        own = [r for r in plain if (r.spec["method"], r.spec["end"]) == (method, end)]
        return f"{sum(r.last('escaped') == 1 for r in own)} of {len(own)}"

    growth = ""
    for sgd in plain:
        if sgd.job == "divergence/q/sgd" and sgd.last("growth/closed_form"):
            error = minus(f"{sgd.last('closed_form_error'):.0e}")
            growth = (
                f" With plain gradient steps w grows by {sgd.last('growth'):.4f} per update, as "
                f"the closed form says ({sgd.last('growth/closed_form'):.4f}; largest relative "
                f"error {error})."
            )
    return (
        f"Q-learning passes |Q| = {plain[0].facts['limit']:g} in {escaped('q', 'logged')} runs, "
        f"BVE in {escaped('bve', 'logged')}.{growth} BVE stays bounded only because the log holds "
        f"no action in s3: made to bootstrap there, it escapes in {escaped('bve', 'bootstrap')}."
    )


def figures(runs: Sequence[Run]) -> list[Chart]:
    """Q(s2, a2) over updates: a row per optimiser, a column per way to learn."""
    plain = _plain(runs)
    draws = len({run.spec["seed"] for run in plain if _way(run) == ("fixed", "one")})
    note = (
        "Value learned for (s2, a2), whose true value is 0, from w = 1; a line ends where it "
        f"passes 10,000. One transition per update: mean of n = {draws} draws, band: 95% Student "
        "interval; else no randomness. Bootstrapping at s3, where the log holds no action, makes "
        "BVE escape like Q-learning (lines coincide)." + _bounded(runs)
    )
    panels = tuple(
        Panel(f"{label}, {words}", _lines([r for r in plain if _way(r) == way], optimiser))
        for optimiser, label in _OPTIMISERS.items()
        for way, words in _WAYS.items()
    )
    name, title = "theory-divergence-values", "Escaping to infinity on three transitions"
    labels = ("updates", "value of (s2, a2)")
    return [Chart(name, title, note, "lines", *labels, panels, "log", "symlog", same_y=True)]


def _plain(runs: Sequence[Run]) -> list[Run]:
    """As the paper starts."""
    return [run for run in runs if run.spec["w"] == 1 and run.spec["factor"] == 1]


def _way(run: Run) -> tuple[str, str]:
    return run.spec["first_layer"], run.spec["batch"]


def _bounded(runs: Sequence[Run]) -> str:
    """Bounded is not correct: what BVE prefers in s1 from another start."""
    other = next((r for r in runs if r.spec["method"] == "bve" and r.spec["w"] != 1), None)
    if other is None or other.last("greedy/s1") == 0:
        return ""
    return (
        " BVE as logged keeps the value it starts from: bounded, not correct "
        f"(from w = {other.spec['w']:g} it prefers a1 to the optimal a0)."
    )


def _lines(runs: Sequence[Run], optimiser: str) -> tuple[Series, ...]:
    own = grouped(
        ((r.spec["method"], r.spec["end"]), r) for r in runs if r.spec["optimiser"] == optimiser
    )
    return tuple(
        Series(name, colour, _points(own[key]), dash=dash)
        for key, (name, colour, dash) in _LINES.items()
        if key in own
    )


def _points(runs: Sequence[Run]) -> tuple[Point, ...]:
    """Means over draws up to where they pass the top; update 0 has no place on a log axis."""
    rows = [row for run in runs for row in run.rows if row.metric == "q/s2/a2" and row.step]
    points: list[Point] = []
    for step, values in grouped(((row.step, row.value) for row in rows), int).items():
        points.append(estimated(step, np.clip(values, -TOP, TOP)))
        if abs(points[-1].y) >= TOP:
            break
    return tuple(points)
