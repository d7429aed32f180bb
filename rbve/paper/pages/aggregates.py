"""Over all problems: mean, median and IQM, probability of improvement, performance profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from rbve.paper.pages.gather import Shown
from rbve.paper.pages.html import paragraph, table
from rbve.paper.pages.scores import BEST, COLOURS, OTHERS, Results, ways
from rbve.report import across, statistics
from rbve.report.across import Interval
from rbve.report.chart import Chart, Mark, Panel, Point, Series
from rbve.report.statistics import Floats
from rbve.report.table import number

ByTask = Mapping[str, Floats]

STATISTICS: dict[str, Callable[[ByTask], Interval]] = {
    "mean": across.mean_interval,
    "median": partial(across.interval, statistic=across.median_of_tasks),
    "interquartile mean": partial(across.interval, statistic=across.pooled_iqm),
}
ABOUT_STATISTICS = (
    "mean and median: over problems, of each problem's mean over datasets; interquartile mean: of "
    "all problems' datasets, without the lowest and the highest quarter"
)
RESAMPLED = "95% bootstrap interval, datasets resampled within each problem (2,000 resamples)"
OURS = "R-BVE"
TOLD = (0, 25, 50, 75, 90, 100)  # thresholds in the table of profiles
PLACES = 41  # thresholds in the figure of profiles


def complete(known: Results, way: str) -> dict[Shown, dict[str, Floats]]:
    """method -> problem -> scores; methods that lack a problem cannot be compared and are out."""
    found: dict[Shown, dict[str, Floats]] = {}
    for problem, own in known.items():
        for each in own:
            scores = statistics.finite((each.others if way == OTHERS else each.best).values())
            if len(scores):
                found.setdefault(each.method, {})[problem.label] = scores
    tasks = {label for scores in found.values() for label in scores}
    whole = {method: scores for method, scores in found.items() if set(scores) == tasks}
    return dict(sorted(whole.items(), key=lambda pair: pair[0].place))


def has_several_scores(known: Results) -> bool:
    """Of some method: of one score alone there are no statistics."""
    return any(sum(map(len, own.values())) > 1 for own in complete(known, OTHERS).values())


def left_out(known: Results) -> list[str]:
    there = complete(known, OTHERS)
    methods = {each.method for own in known.values() for each in own}
    return [m.name for m in sorted(methods, key=lambda m: m.place) if m not in there]


def charts(known: Results, slug: str) -> tuple[Chart, ...]:
    if not complete(known, OTHERS):
        return ()
    found = [statistics_chart(known, slug), profile_chart(known, slug)]
    if improvements(known):
        found.insert(1, improvement_chart(known, slug))
    return tuple(found)


def statistics_of(known: Results, way: str) -> dict[str, dict[Shown, Interval]]:
    scores = complete(known, way)
    return {
        name: {method: statistic(own) for method, own in scores.items()}
        for name, statistic in STATISTICS.items()
    }


def point(x: float | str, found: Interval) -> Point:
    low, high = (None if np.isnan(end) else end for end in (found.low, found.high))
    return Point(x, found.value, low, high, found.n)


def statistics_chart(known: Results, slug: str) -> Chart:
    words = ways(known)
    found = {way: statistics_of(known, way) for way in words}
    dots = f"Dot: {words[OTHERS]}" + (f"; ring: {BEST}" if BEST in words else "")
    return Chart(
        name=f"{slug}-aggregates",
        title=f"Normalised score over {tasks_words(known)}",
        note=f"{dots}; bar: of the mean the 95% Student interval over datasets, of the others the "
        f"{RESAMPLED}; {ABOUT_STATISTICS}. {n_words(known)}",
        kind="rows",
        x_label="method",
        y_label="normalised score",
        panels=tuple(
            Panel(
                name,
                tuple(
                    Series(
                        name_of_way,
                        COLOURS[way],
                        tuple(point(m.name, each) for m, each in found[way][name].items()),
                        marker="dot" if way == OTHERS else "ring",
                        strong=way == OTHERS,
                    )
                    for way, name_of_way in words.items()
                ),
            )
            for name in STATISTICS
        ),
        x_scale="category",
        same_y=True,
    )


def improvements(known: Results) -> dict[Shown, Interval]:
    """P(R-BVE above the other on the same problem), by the other."""
    scores = complete(known, OTHERS)
    ours = next((own for method, own in scores.items() if method.name == OURS), None)
    if ours is None:
        return {}
    return {
        method: across.probability_of_improvement(ours, own)
        for method, own in scores.items()
        if method.name != OURS
    }


def improvement_chart(known: Results, slug: str) -> Chart:
    found = improvements(known)
    return Chart(
        name=f"{slug}-improvement",
        title=f"How likely {OURS} scores above another method",
        note=f"Share of pairs of datasets of one problem in which {OURS} scores higher, ties half, "
        f"mean over problems; ½ = neither; bar: {RESAMPLED}; {ways(known)[OTHERS]}. "
        f"{n_words(known)}",
        kind="rows",
        x_label=f"{OURS} against",
        y_label=f"probability that {OURS} scores higher",
        panels=(
            Panel(
                "",
                (
                    Series(
                        OURS,
                        "#D62410",
                        tuple(point(method.name, each) for method, each in found.items()),
                        strong=True,
                    ),
                ),
                (Mark(0.5, "neither"),),
            ),
        ),
        x_scale="category",
    )


def profile_chart(known: Results, slug: str) -> Chart:
    scores = complete(known, OTHERS)
    every = np.concatenate([task for own in scores.values() for task in own.values()])
    # Scores far outside say nothing a share at the end of the axis does not.
    low = max(-50.0, 10 * np.floor(every.min() / 10))
    high = min(200.0, max(low + 10, 10 * np.ceil(every.max() / 10)))
    at = np.linspace(low, high, PLACES)
    return Chart(
        name=f"{slug}-profiles",
        title="Performance profiles",
        note="Share of datasets on which a method scores above a threshold, every problem counting "
        f"alike; higher is better. Band: {RESAMPLED}; "
        f"{ways(known)[OTHERS]}. {n_words(known)}",
        kind="lines",
        x_label="normalised score",
        y_label="share of datasets above it",
        panels=(
            Panel(
                "",
                tuple(
                    Series(
                        method.name,
                        method.colour,
                        tuple(
                            point(float(x), each)
                            for x, each in zip(at, across.performance_profile(own, at), strict=True)
                        ),
                        strong=method.strong,
                        dash=1 if method.place[1] else 0,
                    )
                    for method, own in scores.items()
                ),
            ),
        ),
    )


def tasks_words(known: Results) -> str:
    count = len({label for own in complete(known, OTHERS).values() for label in own})
    return f"{count} problem{'' if count == 1 else 's'}"


def n_words(known: Results) -> str:
    counts = sorted({sum(map(len, own.values())) for own in complete(known, OTHERS).values()})
    many = f"{counts[0]} to {counts[-1]}" if counts[1:] else str(counts[0])
    return f"n = {many} datasets of {tasks_words(known)} per method."


def text(found: Interval, places: int = 1) -> str:
    value, low, high = (number(each, places) for each in found[:3])
    return value if np.isnan(found.low) else f"{value} [{low}, {high}]"


def tables(known: Results) -> str:
    scores = complete(known, OTHERS)
    if not scores:
        return ""
    found = {way: statistics_of(known, way) for way in ways(known)}
    better = improvements(known)
    best = [f"{name}, best of all" for name in STATISTICS] if BEST in found else []
    rows = [
        (
            method.name,
            *(text(found[OTHERS][name][method]) for name in STATISTICS),
            text(better[method], 2) if method in better else "",
            *(text(found[BEST][name][method]) for name in STATISTICS if best),
        )
        for method in scores
    ]
    at = np.array(TOLD, np.float64)
    shares = [
        (method.name, *(text(each, 2) for each in across.performance_profile(own, at)))
        for method, own in scores.items()
    ]
    missing = left_out(known)
    words = (
        paragraph(f"Left out, since runs on some problem are missing: {', '.join(missing)}.")
        if missing
        else ""
    )
    return (
        words
        + table(
            "over problems",
            ["method", *STATISTICS, f"P({OURS} higher)", *best],
            rows,
            main=OURS,
        )
        + paragraph("Share of datasets that score above a threshold:", "muted")
        + table("profiles", ["method", *(f"above {x}" for x in TOLD)], shares, main=OURS)
    )
