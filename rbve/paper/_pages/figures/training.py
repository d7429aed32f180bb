"""Return, value error and over-estimation over training."""

import math
from collections.abc import Sequence

from rbve.paper._pages import measures
from rbve.paper._pages.gather import Shown, Study, by_method, by_problem
from rbve.paper.finals import Final, Finals, Problem, best_setting
from rbve.report.chart import Chart, Mark, Panel, Point, Series
from rbve.report.labels import PROXY, SHORT_REFERENCES
from rbve.report.statistics import finite
from rbve.rows import Run

PLACE, TITLE, SHORT = 3, "Over training", "Training"
ABOUT = (
    "How return and the error of the values develop, problem by problem. Errors are not known "
    "where values were not measured, or all episodes were cut."
)
_MEASURES = ("return", "value_error", "overestimation")
_CHOICE = (
    "Of methods with several settings: the one whose final score is best over all datasets, so the "
    "lines flatter all of them alike."
)
_UNKNOWN = (
    "No data: values were not measured, or all episodes were cut and lack the end of their return."
)


def figures(study: Study, name: str) -> list[Chart] | None:
    is_methods = study.experiments[name].figure == "methods"
    return charts(study, study.of(name), name.replace("_", "-")) if is_methods else None


def charts(study: Study, finals: Finals, slug: str) -> list[Chart]:
    """Without those that would be empty."""
    every = (_chart(study, finals, slug, measure) for measure in _MEASURES)
    return [each for each in every if any(panel.series for panel in each.panels)]


def _chart(study: Study, finals: Finals, slug: str, measure: str) -> Chart:
    problems = by_problem(finals)

    def panel(problem: Problem, own: list[Final]) -> Panel:
        lines = (_curve(study, *each, measure) for each in by_method(own).items())
        marks = _references(study, own) if measure == "return" else ()
        return Panel(problem.label, tuple(line for line in lines if line.points), marks)

    panels = tuple(panel(*each) for each in problems.items())
    empty = measure in measures.FOLDED and any(not each.series for each in panels)
    counts = [len({each.seed for each in own}) for own in problems.values()]
    return Chart(
        name=f"{slug}-{measure}-over-training".replace("_", "-"),
        title=f"{measures.title(measure).partition(',')[0]} over training",
        note=f"Line: {measures.words(measure)}; band or bar: 95% Student interval over datasets; "
        f"{measures.n_words(counts)}. {_CHOICE}{f' {_UNKNOWN}' if empty else ''}",
        kind="lines",
        x_label="updates",
        panels=panels,
        **measures.axis(measure),
    )


def _curve(study: Study, method: Shown, finals: Finals, measure: str) -> Series:
    best = best_setting(finals) or best_setting(finals, "return", "return")
    runs = [study.runs[each.job] for each in finals if each.settings == best]
    return method.series(points(runs, measure))


def points(runs: Sequence[Run], measure: str) -> tuple[Point, ...]:
    """At the steps of all runs; of a run that ended early by diverging, the last value stands."""
    paths: list[dict[int, float | None]] = [  # None where there was nothing to measure
        {row.step: row.value if row.n else None for row in run.rows if row.metric == measure}
        for run in runs
    ]
    steps = sorted({step for path in paths for step in path})
    known = ((step, [at(path, step) for path in paths if path]) for step in steps)
    present = ((step, [v for v in values if v is not None]) for step, values in known)
    return tuple(measures.centre(values, measure).point(step) for step, values in present if values)


def at(path: dict[int, float | None], step: int) -> float | None:
    """What a run had come to."""
    if step in path:
        return path[step]
    last = max(path)
    return path[last] if step > last else math.nan


def _references(study: Study, finals: Finals) -> tuple[Mark, ...]:
    """Means over datasets."""
    facts = study.facts(finals)
    proxy = any("reference_source" in each for each in facts)
    names = SHORT_REFERENCES | ({"reference_return": PROXY} if proxy else {})
    known = {name: finite(each.get(name) for each in facts) for name in names}
    return tuple(
        Mark(float(values.mean()), names[name])
        for name, values in known.items()
        if len(values) and name != "best_return"
    )
