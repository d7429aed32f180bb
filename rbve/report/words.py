"""Sentences about a problem, computed from its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rbve.report import table
from rbve.report.advice import advice
from rbve.report.summary import Method, Problem
from rbve.rows import TOLERATED_OUTSIDE


def headline(problem: Problem) -> list[str]:
    """The best, whether cloning suffices, what is not apart from the best, values, divergence."""
    if not problem.ranked:
        missing = "trained from data alone, no environment to evaluate in"
        if problem.env:
            missing = "no run has been evaluated to its end yet"
        return [f"No returns: {missing}.", *_outside_words(problem), *_diverged_words(problem)]
    best = best_words(problem)
    behaviour = problem.references.get("behaviour_return")
    if behaviour is not None:
        best += f"; behaviour {table.number(behaviour, table.return_places(problem))}"
    return [
        f"Best mean return: {best}.",
        *filter(None, [advice(problem)]),
        *_close_words(problem),
        *_overestimation_words(problem),
        *_outside_words(problem),
        *_diverged_words(problem),
    ]


def _close_words(problem: Problem) -> list[str]:
    if problem.ranked[0].estimates["return"].low is None:
        return ["It rests on one run, so there is no interval."]
    near = _close_to_best(problem)
    if problem.ranked[0].estimates["return"].over == "runs":
        alone = ["All its runs share one dataset, so the interval tells nothing of other data."]
        return [*alone, *_overlap_words(near)]
    return _overlap_words(near)


def _overlap_words(near: Sequence[str]) -> list[str]:
    if not near:
        return []
    if len(near) == 1:
        return [f"The interval of {near[0]} overlaps with that of the best."]
    return [f"The intervals of {_listing(near)} overlap with that of the best."]


def _overestimation_words(problem: Problem) -> list[str]:
    found = [(m, m.estimates["overestimation"]) for m in problem.methods]
    medians = {m.name: each.median for m, each in found if each.n}
    if len(set(medians.values())) < 2:
        return []
    ends = [
        f"{side} {_listing([n for n in medians if medians[n] == end])}, {table.number(end)}"
        for side, end in (("lowest", min(medians.values())), ("highest", max(medians.values())))
    ]
    return [f"Median over-estimation error: {'; '.join(ends)}."]


def _outside_words(problem: Problem) -> list[str]:
    found = {m.name: m.estimates["values_outside"] for m in problem.methods}
    shares = {name: each.mean for name, each in found.items() if each.n}
    high = [
        f"{name} {table.percent(share)}"
        for name, share in shares.items()
        if share > TOLERATED_OUTSIDE
    ]
    if not high:
        return []
    return [f"Claimed values outside the returns that the data's rewards allow: {_listing(high)}."]


def best_words(problem: Problem) -> str:
    if not problem.ranked:
        return table.ABSENT
    best = problem.ranked[0]
    found = best.estimates["return"]
    equal = [m.name for m in problem.ranked if m.estimates["return"].mean == found.mean]
    places = table.return_places(problem)
    if len(equal) > 1:
        return f"{_listing(equal)}, each {table.number(found.mean, places)}"
    return f"{_tagged(best)} {table.interval(found, places)} (n={found.n})"


def _tagged(method: Method) -> str:
    """A name that can stand before a number."""
    return f"{method.name}:" if method.settings else method.name


def _close_to_best(problem: Problem) -> list[str]:
    best = problem.ranked[0].estimates["return"]
    if best.low is None:
        return []
    others = [(m.name, m.estimates["return"]) for m in problem.ranked[1:]]
    return [
        name
        for name, found in others
        if found.mean < best.mean and found.high is not None and found.high >= best.low
    ]


def _diverged_words(problem: Problem) -> list[str]:
    counts = [(m.name, m.diverged, m.n) for m in problem.methods if m.diverged]
    words = [f"{name} {count} of {n}" for name, count, n in counts]
    return [f"Diverged runs: {_listing(words)}."] if words else []


def sizes(problem: Problem) -> str:
    episodes = [facts.get("episodes") for facts in problem.datasets.values()]
    known = sorted(count for count in episodes if count is not None)
    words = f"{plural(len(problem.runs), 'run')}, {plural(len(problem.datasets), 'dataset')}"
    if not known:
        return f"{words}."
    if known[0] == known[-1]:
        return f"{words} of {plural(known[0], 'episode')}."
    return f"{words} of {known[0]:,} to {known[-1]:,} episodes."


def training(problem: Problem) -> str:
    """How long runs are and how often their targets were copied."""
    steps: list[Any] = [run.field("steps") for run in problem.runs]
    periods: list[Any] = [run.field("target_period") for run in problem.runs]
    if not all(type(count) is int for count in (*steps, *periods)):
        return ""
    return (
        f"{table.span(steps)} updates a run; the target network is copied every "
        f"{table.span(periods)}."
    )


def _listing(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
