"""Experiments that set a measure against what varies: a share of the data, λ, a filter, ..."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rbve.paper.experiments import Outline
from rbve.paper.finals import LEARNING_RATE, SCORE, Final, Problem, chosen_on_others
from rbve.paper.pages import measures
from rbve.paper.pages.command import defaults
from rbve.paper.pages.gather import Shown, by_method, by_problem, problem_order
from rbve.report.chart import Chart, Panel, Point, Scale, Series
from rbve.report.labels import METHODS, OTHER_COLOURS, describe

Place = Callable[[Final], float | str]
MEDIAN = "median of environments"
MEDIAN_WORDS = (
    "Last panel: the median of the environments' centres, as in the paper; bar: 95% bootstrap "
    "interval, datasets resampled within each environment."
)
CHOSEN_WORDS = "Of methods with several settings: the one best on the other datasets."
SHADES = ("#0072B2", "#D55E00", *OTHER_COLOURS)  # of categories


@dataclass(frozen=True)
class Axis:
    label: str
    words: str  # in titles: 'by ...'
    place: Place
    kind: Literal["lines", "rows"]
    scale: Scale = "category"


FILTERS = {"dataset": "standardised V̂", "none": "raw V̂"}
SIDES = {"below": "episodes below the mean return", "above": "episodes above the mean return"}
ACTIONS = {"chosen": "action chosen", "executed": "action executed"}


def filter_words(final: Final) -> str:
    name = final.setting("filter")
    if name not in ("exponential", "advantage"):  # the others do not look at the scale of V̂
        return str(name)
    return f"{name}, {FILTERS.get(final.setting('normalise'), final.setting('normalise'))}"


AXES = {
    "keep": Axis(
        "share of the episodes, %",
        "share of the episodes",
        lambda f: 100 * f.problem.keep,
        "lines",
        "log",
    ),
    "lam": Axis("λ", "λ", lambda f: f"{f.setting('lam'):g}", "lines"),
    "epsilon": Axis(
        "ε of the recorded expert",
        "noise of the expert",
        lambda f: f"{f.problem.epsilon or 0:g}",
        "lines",
    ),
    "side": Axis(
        "data", "side of the mean return", lambda f: SIDES.get(f.problem.side, "all"), "rows"
    ),
    "action": Axis("log", "logged action", lambda f: ACTIONS[f.problem.action], "rows"),
    "filter": Axis("filter", "filter", filter_words, "rows"),
}

OF_DATA = ("keep", "epsilon", "side", "action")  # the others are settings


def axis_of(experiment: Outline) -> Axis:
    name = experiment.against
    if name in AXES:
        return AXES[name]
    if name == "setting":
        return Axis("setting", "setting", difference, "rows")
    return Axis(name, name, lambda f: str(f.setting(name)), "rows")


def difference(final: Final) -> str:
    """A setting by what sets it apart from the defaults."""
    own = json.loads(final.settings)
    usual = {LEARNING_RATE: own[LEARNING_RATE], **defaults(final.algorithm)}
    apart = {name: own[name] for name in sorted(own) if own[name] != usual.get(name)}
    return describe(apart) or "default"


def charts(name: str, experiment: Outline, found: Sequence[Final]) -> tuple[Chart, ...]:
    if not found:
        return ()
    axis = axis_of(experiment)
    kept = reported(found) if experiment.against in OF_DATA else found
    chosen = f" {CHOSEN_WORDS}" if len(kept) < len(found) else ""
    return tuple(
        chart(name, experiment, axis, kept, measure, chosen)
        for measure in experiment.measures
        if any(measure in each.values for each in kept)
    )


def reported(found: Sequence[Final]) -> list[Final]:
    """Of a method's settings on a problem, on each dataset the one best on its others."""
    kept: list[Final] = []
    for own in by_problem(found).values():
        for mine in by_method(own).values():
            chosen = chosen_on_others(mine, SCORE, SCORE)
            kept += [f for f in mine if len(chosen) < 2 or chosen.get(f.seed) == f.settings]
    return kept


def chart(
    name: str,
    experiment: Outline,
    axis: Axis,
    found: Sequence[Final],
    measure: str,
    chosen: str = "",
) -> Chart:
    known = [each for each in found if measure in each.values]
    draw = lines if axis.kind == "lines" else rows
    groups = by_panel(known)
    panels = [Panel(title, draw(own, axis, measure)) for title, own in groups.items()]
    if experiment.against == "keep" and len(groups) > 1:
        panels.append(Panel(MEDIAN, medians(known, axis, measure)))
    label = measures.NAMES.get(measure, measure)
    return Chart(
        name=f"{name}-{measure}".replace("_", "-"),
        title=f"{label[0].upper()}{label[1:]} by {axis.words}",
        note=note(known, measure) + chosen + (f" {MEDIAN_WORDS}" if panels[len(groups) :] else ""),
        kind=axis.kind,
        x_label="method" if axis.kind == "rows" and several(known) else axis.label,
        y_label=label,
        panels=tuple(panels),
        x_scale=axis.scale,
        y_scale=measures.axis(measure),
    )


def note(found: Sequence[Final], measure: str) -> str:
    counts = [len({each.seed for each in own}) for own in by_problem(found).values()]
    return (
        f"Dot: {measures.words(measure)}; bar: 95% Student interval over datasets; faint: single "
        f"datasets; {measures.n_words(counts)}."
    )


def by_panel(found: Sequence[Final]) -> dict[str, list[Final]]:
    """By environment, and noise where it varies."""
    noises = {each.problem.noise for each in found}
    groups: dict[str, list[Final]] = {}
    for problem, own in by_problem(found).items():
        title = problem.env + (f", noise {problem.noise:g}" if len(noises) > 1 else "")
        groups.setdefault(title, []).extend(own)
    return groups


def several(found: Sequence[Final]) -> bool:
    return len({each.algorithm for each in found}) > 1


def values_at(found: Sequence[Final], axis: Axis, measure: str) -> dict[Any, list[float]]:
    """Value on every dataset, by place on the axis and in its order."""
    groups: dict[Any, list[float]] = {}
    for each in sorted(found, key=lambda f: order(f, axis)):
        groups.setdefault(axis.place(each), []).append(each.values[measure])
    return groups


def order(final: Final, axis: Axis) -> tuple[Any, ...]:
    """Numbers by size, words as the axis lists them."""
    place = axis.place(final)
    try:
        return (0, float(place), "", final.seed)
    except ValueError:
        listed = [*SIDES.values(), *ACTIONS.values(), "default", "none", "binary"]
        return (1, listed.index(place) if place in listed else len(listed), place, final.seed)


def lines(found: Sequence[Final], axis: Axis, measure: str) -> tuple[Series, ...]:
    """A line per method."""
    return tuple(
        series(method, values_at(own, axis, measure), measure)
        for method, own in by_method(found).items()
    )


def series(method: Shown, at: Mapping[Any, list[float]], measure: str) -> Series:
    return Series(
        method.name,
        method.colour,
        tuple(measures.centre(values, measure).point(x) for x, values in at.items()),
        members=tuple((x, value) for x, values in at.items() for value in values),
        strong=method.strong,
    )


def rows(found: Sequence[Final], axis: Axis, measure: str) -> tuple[Series, ...]:
    """Of several methods: a row per method, a series per category. Of one: a row per category."""
    if not several(found):
        name, colour = METHODS.get(found[0].algorithm, (found[0].algorithm, SHADES[0]))
        only = Shown(name, colour, True, (0, ""))
        return (series(only, values_at(found, axis, measure), measure),)
    result = []
    for index, category in enumerate(values_at(found, axis, measure)):
        own = [each for each in found if axis.place(each) == category]
        at = {m.name: [f.values[measure] for f in mine] for m, mine in by_method(own).items()}
        look = Shown(str(category), SHADES[index % len(SHADES)], False, (index, ""))
        result.append(series(look, at, measure))
    return tuple(result)


def medians(found: Sequence[Final], axis: Axis, measure: str) -> tuple[Series, ...]:
    """The paper's figure: the median over environments, here of those that have every share."""
    result = []
    for method, own in by_method(found).items():
        envs = {each.problem.env for each in own}
        points: list[Point] = []
        for x in values_at(own, axis, measure):
            tasks: dict[Problem, list[float]] = {}
            for each in own:
                if axis.place(each) == x:
                    tasks.setdefault(each.problem, []).append(each.values[measure])
            if {problem.env for problem in tasks} == envs:
                by_label = {str(problem_order(p)): np.array(v) for p, v in tasks.items()}
                points.append(measures.median_over(by_label, measure).point(x))
        result.append(Series(method.name, method.colour, tuple(points), strong=method.strong))
    return tuple(result)
