"""A search for settings as one self-contained page: what won, how it came to it, what mattered."""

import math
from collections.abc import Sequence
from pathlib import Path

from markupsafe import escape

from rbve.report import marks, page
from rbve.report.chart import Chart, Panel, Point, Series
from rbve.report.figure import Entry, Figure
from rbve.report.ope_words import BLUE, GREY, ORANGE, html_table, number
from rbve.report.page import Section
from rbve.tuning.search import Trial, Tuning
from rbve.tuning.space import Range

_STATES = {"finished": BLUE, "stopped": GREY}


def write(tuning: Tuning, data: str, out: Path) -> Path:
    """Write the page into the folder; figures and their numbers lie beside it."""
    options = tuning.options
    rungs = ", ".join(f"{steps:,}" for steps in options.rung_steps)
    better = "more" if tuning.maximise else "less"
    about = (
        f"{escape(data)}: {len(tuning.trials)} trials, proposed by {options.sampler}, judged by "
        f"{escape(tuning.criterion)} ({better} is better) after {rungs} updates."
    )
    sections = [_summary(tuning), _history(tuning), *_importance(tuning), *_values(tuning)]
    return page.write([*sections, _trials(tuning)], out, "Search for settings", about)


def _summary(tuning: Tuning) -> Section:
    counts = {state: sum(each.state == state for each in tuning.trials) for state in _ENDS}
    ends = ", ".join(f"{count} {_ENDS[state]}" for state, count in counts.items() if count)
    best = tuning.best
    if best is None:
        body = "<p class='headline'>Every trial diverged.</p><p>Lower the learning rates.</p>"
        return Section("best", "Best", body, first=True)
    words = ", ".join(f"{name} {value}" for name, value in best.tried.items())
    body = (
        f"<p class='headline'>Trial {best.number}: {escape(words)}.</p>"
        f"<p>{escape(tuning.criterion)} {number(best.value)} after {best.steps:,} updates. Of "
        f"{len(tuning.trials)} trials {ends}.</p>"
        "<p>The best of many is partly the luckiest: judge its policy by episodes or seeds that "
        "the search has not used before you rely on the figure.</p>"
        f"<p>Run <code>{escape(best.job)}</code>; its policy is <code>policy.safetensors</code>."
        "</p>"
    )
    return Section("best", "Best", body, first=True)


_ENDS = {"finished": "came to the end", "stopped": "were stopped before", "diverged": "diverged"}


def _points(tuning: Tuning, state: str) -> list[Trial]:
    return [each for each in tuning.trials if each.state == state and each.value is not None]


def _history(tuning: Tuning) -> Section:
    sign, best = (1 if tuning.maximise else -1), list[dict[str, float]]()
    for each in _points(tuning, "finished"):
        value = each.value or 0.0
        if not best or sign * value > sign * best[-1]["value"]:
            best.append({"x": each.number, "value": value})
    if best:
        best.append({"x": tuning.trials[-1].number, "value": best[-1]["value"]})
    title, note = "What each trial reached", "A dot is a trial, at the last rung it came to"
    note += ": those that were stopped trained less. The line is the best so far."
    numbers = {each.number: float(each.number) for each in tuning.trials}
    return Section(
        "history", "History", "", (_scatter("reached", title, note, tuning, numbers, best),)
    )


def _importance(tuning: Tuning) -> list[Section]:
    if not tuning.importance:
        return []
    ordered = sorted(tuning.importance.items(), key=lambda item: -item[1])
    points = tuple(Point(name, 100 * share) for name, share in ordered)
    chart = Chart(
        "mattered", "What mattered",
        "Share of what sets good trials apart from the others, by name (PED-ANOVA), at the "
        "first rung and over the ranges that were searched; rough under a few dozen trials.",
        "rows", "", "%", (Panel("", (Series("importance", BLUE, points),)),), x_scale="category",
    )  # fmt: skip
    return [Section("importance", "Importance", "", (chart,))]


def _values(tuning: Tuning) -> list[Section]:
    """A figure of each name with numbers: where on its range the good trials lie."""
    figures = []
    for name, choice in tuning.space.items():
        if isinstance(choice, Range):
            at = {t.number: float(t.tried[name]) for t in tuning.trials if name in t.tried}
            own = f"by-{name.replace('_', '-')}"
            figures.append(_scatter(own, name, "A dot is a trial.", tuning, at, log=choice.log))
    return [Section("values", "Figure by value", "", tuple(figures))] if figures else []


def _scatter(
    name: str,
    title: str,
    note: str,
    tuning: Tuning,
    at: dict[int, float],
    best: Sequence[dict[str, float]] = (),
    log: bool = False,
) -> Figure:
    """The figure of each trial, by a number of it."""
    rows = [
        {"series": state, "x": at[each.number], "value": each.value, "note": f"trial {each.number}"}
        for state in _STATES for each in _points(tuning, state) if each.number in at
    ]  # fmt: skip
    axis = marks.Axis(list(at.values()), "log" if log else "linear")
    label = "trial" if name == "reached" else title
    along = {
        "x": marks.measure("x", label, axis=axis, grid=False),
        "y": marks.measure("value", tuning.criterion),
    }
    layers = []
    if best:
        line = {"type": "line", "strokeWidth": 2, "color": ORANGE, "interpolate": "step-after"}
        layers.append(marks.layer(line, along, best))
    dots = {**along, "color": marks.colours(_STATES)}
    dot = {"type": "point", "filled": True, "size": 60, "opacity": 1}
    layers.append(marks.layer(dot, dots, name="points"))
    view = marks.view(layers, width=620 if name == "reached" else 330)
    columns = {"note": "trial", "series": "end", "x": label, "value": tuning.criterion}
    legend = tuple(Entry(state, colour) for state, colour in _STATES.items())
    return Figure(name, title, note, view, rows, columns, legend)


def _trials(tuning: Tuning) -> Section:
    names = list(dict.fromkeys(name for each in tuning.trials for name in each.tried))
    sign = 1 if tuning.maximise else -1
    order = sorted(
        tuning.trials,
        key=lambda each: (-each.steps, math.inf if each.value is None else -sign * each.value),
    )
    rows = [
        (
            str(each.number), each.state, f"{each.steps:,}", number(each.value),
            *(each.tried.get(name, "–") for name in names), each.job,
        )
        for each in order
    ]  # fmt: skip
    heads = ("trial", "end", "updates", tuning.criterion, *names, "run")
    return Section("trials", "All trials", html_table(heads, rows))
