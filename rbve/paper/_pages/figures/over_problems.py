"""Over all problems: mean, median and IQM, probability of improvement, performance profiles."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

import numpy as np

from rbve.paper._pages import render
from rbve.paper._pages.gather import BEST, COLOURS, OTHERS, Results, Shown, Study, results_of, ways
from rbve.paper._pages.measures import span
from rbve.report import statistics
from rbve.report.chart import Chart, Mark, Panel, Point, Series
from rbve.report.statistics import Floats, Interval
from rbve.report.table import number

PLACE, TITLE, SHORT = 2, "Scores over all problems", "Over problems"
ABOUT = (
    "Every problem counts alike. The mean has a Student interval over datasets; the others are "
    "bootstrapped: datasets resampled within each problem, never problems."
)

_ByTask = Mapping[str, Floats]
_Labels = tuple[Literal["rows", "lines"], str, str]  # of a chart: its kind, x and y

_STATISTICS: dict[str, Callable[[_ByTask], Interval]] = {
    "mean": statistics.mean_interval,
    "median": partial(statistics.interval, statistic=statistics.median_of_tasks),
    "interquartile mean": partial(statistics.interval, statistic=statistics.pooled_iqm),
}
_ABOUT_STATISTICS = (
    "mean and median: over problems, of each problem's mean over datasets; interquartile mean: of "
    "all problems' datasets, without the lowest and the highest quarter"
)
_RESAMPLED = "95% bootstrap interval, datasets resampled within each problem (2,000 resamples)"
_OURS = "R-BVE"
_THRESHOLDS = (0, 25, 50, 75, 90, 100)  # in the table of profiles
_PLACES = 41  # thresholds in the figure of profiles


def figures(study: Study, name: str) -> list[Chart] | None:
    """Of one score of each method alone there are no statistics."""
    results, slug = results_of(study, name), name.replace("_", "-")
    if not any(sum(map(len, own.values())) > 1 for own in complete(results, OTHERS).values()):
        return None
    better = [improvement_chart(results, slug)] if improvements(results) else []
    return [statistics_chart(results, slug), *better, profile_chart(results, slug)]


def tables(study: Study, name: str) -> str:
    results = results_of(study, name)
    scores, better = complete(results, OTHERS), improvements(results)
    by_way = {way: statistics_of(results, way) for way in ways(results)}
    best = [f"{name}, best of all" for name in _STATISTICS] if BEST in by_way else []
    methods = {each.method for own in results.values() for each in own}
    at = np.array(_THRESHOLDS, np.float64)
    return render(
        "over_problems.jinja",
        left_out=[m.name for m in sorted(methods, key=lambda m: m.place) if m not in scores],
        columns=["method", *_STATISTICS, f"P({_OURS} higher)", *best],
        rows=[
            (
                method.name,
                *(text(by_way[OTHERS][name][method]) for name in _STATISTICS),
                text(better[method], 2) if method in better else "",
                *(text(by_way[BEST][name][method]) for name in _STATISTICS if best),
            )
            for method in scores
        ],
        thresholds=["method", *(f"above {x}" for x in _THRESHOLDS)],
        shares=[
            (method.name, *(text(each, 2) for each in statistics.performance_profile(own, at)))
            for method, own in scores.items()
        ],
    )


def complete(results: Results, way: str) -> dict[Shown, dict[str, Floats]]:
    """method -> problem -> scores; methods that lack a problem cannot be compared and are out."""
    found: dict[Shown, dict[str, Floats]] = {}
    for problem, own in results.items():
        for each in own:
            scores = statistics.finite((each.others if way == OTHERS else each.best).values())
            if len(scores):
                found.setdefault(each.method, {})[problem.label] = scores
    tasks = {label for scores in found.values() for label in scores}
    whole = {method: scores for method, scores in found.items() if set(scores) == tasks}
    return dict(sorted(whole.items(), key=lambda pair: pair[0].place))


def statistics_of(results: Results, way: str) -> dict[str, dict[Shown, Interval]]:
    scores = complete(results, way)
    return {
        name: {method: statistic(own) for method, own in scores.items()}
        for name, statistic in _STATISTICS.items()
    }


def improvements(results: Results) -> dict[Shown, Interval]:
    """P(R-BVE above the other on the same problem), by the other."""
    scores = complete(results, OTHERS)
    return {
        method: statistics.probability_of_improvement(ours, own)
        for ours in (own for method, own in scores.items() if method.name == _OURS)
        for method, own in scores.items()
        if method.name != _OURS
    }


def statistics_chart(results: Results, slug: str) -> Chart:
    words, (tasks, n) = ways(results), _counted(results)
    by_way = {way: statistics_of(results, way) for way in words}
    dots = f"Dot: {words[OTHERS]}" + (f"; ring: {BEST}" if BEST in words else "")

    def series(way: str, name: str) -> Series:
        points = tuple(_point(m.name, each) for m, each in by_way[way][name].items())
        marker: Literal["dot", "ring"] = "dot" if way == OTHERS else "ring"
        return Series(words[way], COLOURS[way], points, marker=marker, strong=way == OTHERS)

    title = f"Normalised score over {tasks}"
    note = (
        f"{dots}; bar: of the mean the 95% Student interval over datasets, of the others the "
        f"{_RESAMPLED}; {_ABOUT_STATISTICS}. {n}"
    )
    labels: _Labels = ("rows", "method", "normalised score")
    panels = tuple(Panel(name, tuple(series(way, name) for way in words)) for name in _STATISTICS)
    return Chart(f"{slug}-aggregates", title, note, *labels, panels, "category", same_y=True)


def improvement_chart(results: Results, slug: str) -> Chart:
    points = tuple(_point(method.name, each) for method, each in improvements(results).items())
    line = Series(_OURS, "#D62410", points, strong=True)
    title = f"How likely {_OURS} scores above another method"
    note = (
        f"Share of pairs of datasets of one problem in which {_OURS} scores higher, ties half, "
        f"mean over problems; ½ = neither; bar: {_RESAMPLED}; {ways(results)[OTHERS]}. "
        f"{_counted(results)[1]}"
    )
    labels: _Labels = ("rows", f"{_OURS} against", f"probability that {_OURS} scores higher")
    panels = (Panel("", (line,), (Mark(0.5, "neither"),)),)
    return Chart(f"{slug}-improvement", title, note, *labels, panels, "category")


def profile_chart(results: Results, slug: str) -> Chart:
    scores = complete(results, OTHERS)
    every = np.concatenate([task for own in scores.values() for task in own.values()])
    # Scores far outside say nothing a share at the end of the axis does not.
    low = max(-50.0, 10 * np.floor(every.min() / 10))
    high = min(200.0, max(low + 10, 10 * np.ceil(every.max() / 10)))
    at = np.linspace(low, high, _PLACES)
    lines = []
    for method, own in scores.items():
        shares = zip(at, statistics.performance_profile(own, at), strict=True)
        lines.append(method.series([_point(float(x), each) for x, each in shares]))
    note = (
        "Share of datasets on which a method scores above a threshold, every problem counting "
        f"alike; higher is better. Band: {_RESAMPLED}; "
        f"{ways(results)[OTHERS]}. {_counted(results)[1]}"
    )
    labels: _Labels = ("lines", "normalised score", "share of datasets above it")
    panels = (Panel("", tuple(lines)),)
    return Chart(f"{slug}-profiles", "Performance profiles", note, *labels, panels)


def _point(x: float | str, interval: Interval) -> Point:
    low, high = (None if np.isnan(end) else end for end in (interval.low, interval.high))
    return Point(x, interval.value, low, high, interval.n)


def _counted(results: Results) -> tuple[str, str]:
    """'3 problems', and the sentence that says n."""
    scores = complete(results, OTHERS).values()
    count = len({label for own in scores for label in own})
    tasks = f"{count} problem{'' if count == 1 else 's'}"
    many = span(sum(map(len, own.values())) for own in scores)
    return tasks, f"n = {many} datasets of {tasks} per method."


def text(interval: Interval, places: int = 1) -> str:
    value, low, high = (number(each, places) for each in interval[:3])
    return value if np.isnan(interval.low) else f"{value} [{low}, {high}]"
