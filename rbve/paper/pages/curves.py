"""Return, value error and over-estimation over training."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rbve.paper.finals import SCORE, Final, Problem, best_setting
from rbve.paper.pages import measures
from rbve.paper.pages.gather import Shown, Study, by_method, by_problem
from rbve.report.chart import Chart, Mark, Panel, Point, Series
from rbve.report.labels import PROXY, SHORT_REFERENCES
from rbve.report.statistics import finite
from rbve.rows import Run

TITLES = {
    "return": "Return over training",
    "value_error": "Value error over training",
    "overestimation": "Over-estimation error over training",
}
CHOICE = (
    "Of methods with several settings: the one whose final score is best over all datasets, so the "
    "lines flatter all of them alike."
)
UNKNOWN = (
    "No data: values were not measured, or all episodes were cut and lack the end of their return."
)


def charts(study: Study, found: Sequence[Final], slug: str) -> tuple[Chart, ...]:
    """Without those that would be empty."""
    every = (chart(study, found, slug, measure) for measure in TITLES)
    return tuple(each for each in every if any(panel.series for panel in each.panels))


def chart(study: Study, found: Sequence[Final], slug: str, measure: str) -> Chart:
    problems = by_problem(found)
    panels = tuple(panel(study, problem, own, measure) for problem, own in problems.items())
    empty = measure in measures.FOLDED and any(not each.series for each in panels)
    counts = [len({each.seed for each in own}) for own in problems.values()]
    return Chart(
        name=f"{slug}-{measure}-over-training".replace("_", "-"),
        title=TITLES[measure],
        note=f"Line: {measures.words(measure)}; band or bar: 95% Student interval over "
        "datasets; "
        f"{measures.n_words(counts)}. {CHOICE}{f' {UNKNOWN}' if empty else ''}",
        kind="lines",
        x_label="updates",
        y_label=measures.NAMES[measure],
        panels=panels,
        y_scale=measures.axis(measure),
    )


def panel(study: Study, problem: Problem, own: Sequence[Final], measure: str) -> Panel:
    every = (curve(study, method, mine, measure) for method, mine in by_method(own).items())
    return Panel(
        problem.label,
        tuple(series for series in every if series.points),
        references(study, own) if measure == "return" else (),
    )


def curve(study: Study, method: Shown, found: Sequence[Final], measure: str) -> Series:
    best = best_setting(found, SCORE, SCORE) or best_setting(found, "return", "return")
    runs = [study.runs[each.job] for each in found if each.settings == best]
    return Series(
        method.name,
        method.colour,
        points(runs, measure),
        dash=1 if method.place[1] else 0,
        strong=method.strong,
    )


def points(runs: Sequence[Run], measure: str) -> tuple[Point, ...]:
    """At the steps of all runs; of a run that ended early by diverging, the last value stands."""
    paths = [path for path in (values_of(run, measure) for run in runs) if path]
    steps = sorted({step for path in paths for step in path})
    known = ((step, [at(path, step) for path in paths]) for step in steps)
    present = ((step, [v for v in values if v is not None]) for step, values in known)
    return tuple(measures.centre(values, measure).point(step) for step, values in present if values)


def values_of(run: Run, measure: str) -> dict[int, float | None]:
    """By step; None where there was nothing to measure."""
    return {row.step: row.value if row.n else None for row in run.rows if row.metric == measure}


def at(path: dict[int, float | None], step: int) -> float | None:
    if step in path:
        return path[step]
    last = max(path)
    return path[last] if step > last else math.nan


def references(study: Study, found: Sequence[Final]) -> tuple[Mark, ...]:
    """Means over datasets."""
    facts = study.facts(found)
    known = {name: finite(each.get(name) for each in facts) for name in SHORT_REFERENCES}
    proxy = any("reference_source" in each for each in facts)
    names = {**SHORT_REFERENCES, **({"reference_return": PROXY} if proxy else {})}
    return tuple(
        Mark(float(values.mean()), names[name])
        for name, values in known.items()
        if len(values) and name != "best_return"
    )
