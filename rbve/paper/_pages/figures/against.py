"""A measure against what varies: a share of the data, λ, a filter, ..."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from rbve.paper._pages import measures
from rbve.paper._pages.command import defaults
from rbve.paper._pages.gather import Shown, Study, by_method, by_problem, grouped, problem_order
from rbve.paper.experiments import Outline
from rbve.paper.finals import LEARNING_RATE, Final, Finals, chosen_on_others
from rbve.report.chart import Chart, Panel, Point, Scale, Series
from rbve.report.labels import METHODS, OTHER_COLOURS, describe

PLACE, TITLE, SHORT, ABOUT = 4, "", "", ""
_MEDIAN = "median of environments"
_MEDIAN_WORDS = (
    "Last panel: the median of the environments' centres, as in the paper; bar: 95% bootstrap "
    "interval, datasets resampled within each environment."
)
_CHOSEN_WORDS = "Of methods with several settings: the one best on the other datasets."
_SHADES = ("#0072B2", "#D55E00", *OTHER_COLOURS)  # of categories

_FILTERS = {"dataset": "standardised V̂", "none": "raw V̂"}
_SIDES = {"below": "episodes below the mean return", "above": "episodes above the mean return"}
_KINDS = ("final: all an agent's experience", "expert", "noisy expert", "random")
_ACTIONS = {"chosen": "action chosen", "executed": "action executed"}


@dataclass(frozen=True)
class Against:
    """An axis: what varies, and where a result stands on it."""

    label: str
    words: str  # in titles: 'by ...'
    place: Callable[[Final], float | str]
    kind: Literal["lines", "rows"] = "rows"
    scale: Scale = "category"
    of_data: bool = False  # it is the data that varies, else settings


def _filter_words(final: Final) -> str:
    name = final.setting("filter")
    if name not in ("exponential", "advantage"):  # the others do not look at the scale of V̂
        return str(name)
    return f"{name}, {_FILTERS.get(final.setting('normalise'), final.setting('normalise'))}"


def _difference(final: Final) -> str:
    """A setting by what sets it apart from the defaults."""
    own = json.loads(final.settings)
    usual = {LEARNING_RATE: own[LEARNING_RATE], **defaults(final.algorithm)}
    apart = {name: own[name] for name in sorted(own) if own[name] != usual.get(name)}
    return describe(apart) or "default"


def _tried(final: Final) -> str:
    """A setting of a sweep: what sets it apart, and the learning rate, which sweeps vary too."""
    own, rate = _difference(final), describe({LEARNING_RATE: final.setting(LEARNING_RATE)})
    return rate if own == "default" else f"{own} {rate}"


def _kind(final: Final) -> str:
    """What the field calls data by who made it."""
    epsilon = final.problem.epsilon
    if epsilon is None:
        return _KINDS[0]
    return _KINDS[3] if epsilon == 1 else _KINDS[2] if epsilon else _KINDS[1]


_of_data = partial(Against, of_data=True)
_AXES = {
    "keep": _of_data(
        "share of the episodes, %", "share of the episodes", lambda f: 100 * f.problem.keep,
        "lines", "log",
    ),
    "lam": Against("λ", "λ", lambda f: f"{f.setting('lam'):g}", "lines"),
    "epsilon": _of_data(
        "ε of the recorded expert", "noise of the expert", lambda f: f"{f.problem.epsilon or 0:g}",
        "lines",
    ),
    "side": _of_data(
        "data", "side of the mean return", lambda f: _SIDES.get(f.problem.side, "all")
    ),
    "kind": _of_data("data", "kind of data", _kind),
    "action": _of_data("log", "logged action", lambda f: _ACTIONS[f.problem.action]),
    "filter": Against("filter", "filter", _filter_words),
    "setting": Against("setting", "setting", _difference),
    "tried": Against("setting", "setting tried", _tried),
}  # fmt: skip


def figures(study: Study, name: str) -> list[Chart] | None:
    experiment = study.experiments[name]
    return charts(name, experiment, study.of(name)) if experiment.figure == "against" else None


def charts(name: str, experiment: Outline, finals: Finals) -> list[Chart]:
    """One of every measure that was taken."""
    against = experiment.against
    axis = _AXES.get(against) or Against(against, against, lambda f: str(f.setting(against)))
    kept = _reported(finals) if axis.of_data else finals
    chosen = f" {_CHOSEN_WORDS}" if len(kept) < len(finals) else ""
    return [
        _chart(name, axis, [each for each in kept if measure in each.values], measure, chosen)
        for measure in experiment.measures
        if any(measure in each.values for each in kept)
    ]


def _reported(finals: Finals) -> list[Final]:
    """Of a method's settings on a problem, on each dataset the one best on its others."""
    kept: list[Final] = []
    for own in by_problem(finals).values():
        for mine in by_method(own).values():
            chosen = chosen_on_others(mine)
            kept += [f for f in mine if len(chosen) < 2 or chosen.get(f.seed) == f.settings]
    return kept


def _chart(name: str, axis: Against, finals: Finals, measure: str, chosen: str) -> Chart:
    draw = _lines if axis.kind == "lines" else _rows
    noises = {each.problem.noise for each in finals}
    groups = grouped(
        (problem.env + (f", noise {problem.noise:g}" if len(noises) > 1 else ""), each)
        for problem, own in by_problem(finals).items()
        for each in own
    )
    panels = [Panel(title, draw(own, axis, measure)) for title, own in groups.items()]
    if axis is _AXES["keep"] and len(groups) > 1:
        panels.append(Panel(_MEDIAN, _medians(finals, axis, measure)))
    counts = [len({each.seed for each in own}) for own in by_problem(finals).values()]
    return Chart(
        name=f"{name}-{measure}".replace("_", "-"),
        title=f"{measures.title(measure)} by {axis.words}",
        note=f"Dot: {measures.words(measure)}; bar: 95% Student interval over datasets; faint: "
        f"single datasets; {measures.n_words(counts)}.{chosen}"
        + (f" {_MEDIAN_WORDS}" if panels[len(groups) :] else ""),
        kind=axis.kind,
        x_label="method" if axis.kind == "rows" and _several(finals) else axis.label,
        panels=tuple(panels),
        x_scale=axis.scale,
        **measures.axis(measure),
    )


def _several(finals: Finals) -> bool:
    return len({each.algorithm for each in finals}) > 1


def _values_at(finals: Finals, axis: Against, measure: str) -> dict[Any, list[float]]:
    """Value on every dataset, by place on the axis: numbers by size, words as it lists them."""
    listed = [*_SIDES.values(), *_ACTIONS.values(), *_KINDS, "default", "none", "binary"]

    def order(final: Final) -> tuple[Any, ...]:
        place = axis.place(final)
        try:
            return (0, float(place), "", final.seed)
        except ValueError:
            return (1, listed.index(place) if place in listed else len(listed), place, final.seed)

    return grouped((axis.place(f), f.values[measure]) for f in sorted(finals, key=order))


def _lines(finals: Finals, axis: Against, measure: str) -> tuple[Series, ...]:
    """A line per method."""
    return tuple(
        _series(method, _values_at(own, axis, measure), measure)
        for method, own in by_method(finals).items()
    )


def _series(method: Shown, at: Mapping[Any, list[float]], measure: str) -> Series:
    points = [measures.centre(values, measure).point(x) for x, values in at.items()]
    members = tuple((x, value) for x, values in at.items() for value in values)
    return method.series(points, members=members, dash=0)


def _rows(finals: Finals, axis: Against, measure: str) -> tuple[Series, ...]:
    """Of several methods: a row per method, a series per category. Of one: a row per category."""
    if not _several(finals):
        name, colour = METHODS.get(finals[0].algorithm, (finals[0].algorithm, _SHADES[0]))
        only = Shown(name, colour, True, (0, ""))
        return (_series(only, _values_at(finals, axis, measure), measure),)
    result = []
    for index, category in enumerate(_values_at(finals, axis, measure)):
        own = [each for each in finals if axis.place(each) == category]
        at = {m.name: [f.values[measure] for f in mine] for m, mine in by_method(own).items()}
        look = Shown(str(category), _SHADES[index % len(_SHADES)], False, (index, ""))
        result.append(_series(look, at, measure))
    return tuple(result)


def _medians(finals: Finals, axis: Against, measure: str) -> tuple[Series, ...]:
    """The paper's figure: the median over environments, here of those that have every share."""
    result = []
    for method, own in by_method(finals).items():
        envs = {each.problem.env for each in own}
        points: list[Point] = []
        for x in _values_at(own, axis, measure):
            tasks = grouped((f.problem, f.values[measure]) for f in own if axis.place(f) == x)
            if {problem.env for problem in tasks} == envs:
                by_label = {str(problem_order(p)): np.array(v) for p, v in tasks.items()}
                points.append(measures.median_over(by_label, measure).point(x))
        result.append(method.series(points, dash=0))
    return tuple(result)
