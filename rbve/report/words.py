"""Sentences about a problem, computed from its numbers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rbve.audit.verdict import counted
from rbve.report import table
from rbve.report.statistics import student_interval
from rbve.report.summary import Problem
from rbve.rows import TOLERATED_OUTSIDE

_CLONING = {"bc", "filtered_bc"}
_MARGIN = 0.05  # of the way from random to the best return known: less is too small to matter


def headline(problem: Problem) -> list[str]:
    """The best, whether cloning suffices, what is not apart from the best, values, divergence."""
    diverged = [f"{m.name} {m.diverged} of {m.n}" for m in problem.methods if m.diverged]
    claimed = ((m.name, m.estimates["values_outside"]) for m in problem.methods)
    outside = [
        f"{name} {table.percent(share.mean)}"
        for name, share in claimed
        if share.n and share.mean > TOLERATED_OUTSIDE
    ]
    listed = {
        "Claimed values outside the returns that the data's rewards allow": outside,
        "Diverged runs": diverged,
    }
    last = [f"{what}: {_listing(names)}." for what, names in listed.items() if names]
    if not problem.ranked:
        missing = "trained from data alone, no environment to evaluate in"
        if problem.env:
            missing = "no run has been evaluated to its end yet"
        return [f"No returns: {missing}.", *last]
    best = best_words(problem)
    behaviour = problem.references.get("behaviour_return")
    if behaviour is not None:
        best += f"; behaviour {table.number(behaviour, table.return_places(problem))}"
    middle = [*filter(None, [advice(problem)]), *_close(problem), *_overestimation(problem)]
    return [f"Best mean return: {best}.", *middle, *last]


def _close(problem: Problem) -> list[str]:
    """What tells little apart from the best."""
    best, *others = [(m.name, m.estimates["return"]) for m in problem.ranked]
    if (low := best[1].low) is None:
        return ["It rests on one run, so there is no interval."]
    words = []
    if best[1].over == "runs":
        words = ["All its runs share one dataset, so the interval tells nothing of other data."]
    near = [
        name
        for name, estimate in others
        if estimate.mean < best[1].mean and estimate.high is not None and estimate.high >= low
    ]
    if near:
        overlap = "interval of {} overlaps" if len(near) == 1 else "intervals of {} overlap"
        words.append(f"The {overlap.format(_listing(near))} with that of the best.")
    return words


def _overestimation(problem: Problem) -> list[str]:
    errors = [(m.name, m.estimates["overestimation"]) for m in problem.methods]
    medians = {name: each.median for name, each in errors if each.n}
    if len(set(medians.values())) < 2:
        return []
    ends = [
        f"{side} {_listing([n for n in medians if medians[n] == end])}, {table.number(end)}"
        for side, end in (("lowest", min(medians.values())), ("highest", max(medians.values())))
    ]
    return [f"Median over-estimation error: {'; '.join(ends)}."]


def best_words(problem: Problem) -> str:
    if not problem.ranked:
        return table.ABSENT
    best = problem.ranked[0]
    returns = best.estimates["return"]
    equal = [m.name for m in problem.ranked if m.estimates["return"].mean == returns.mean]
    places = table.return_places(problem)
    if len(equal) > 1:
        return f"{_listing(equal)}, each {table.number(returns.mean, places)}"
    tagged = f"{best.name}:" if best.settings else best.name  # it can stand before a number
    return f"{tagged} {table.interval(returns, places)} (n={returns.n})"


def advice(problem: Problem) -> str | None:
    """Is cloning enough on a problem, or is another method worth it?

    The better of BC and filtered BC is compared with the best method that learns values, on the
    datasets that both were trained on: the difference of their returns on each dataset, its mean
    and its 95% Student interval over datasets.

    Returns:
        A sentence, or None where cloning and a method that learns values do not share two datasets.
    """
    clones = [method for method in problem.ranked if method.algorithm in _CLONING]
    others = [method for method in problem.ranked if method.algorithm not in _CLONING]
    if not clones or not others:
        return None
    best, cloning = others[0].name, f"cloning ({clones[0].name})"
    ours, theirs = (method.by_dataset("return") for method in (others[0], clones[0]))
    shared = [name for name in ours if name in theirs]
    differences = np.array([np.mean(ours[name]) - np.mean(theirs[name]) for name in shared])
    interval = student_interval(differences)
    if interval is None:
        return None
    places = table.return_places(problem)
    values = (float(differences.mean()), *interval)
    gain = "{} [{}, {}]".format(*(table.number(each, places) for each in values))
    count = f"over {len(differences)} datasets"
    margin = _MARGIN * _scale(problem)
    if interval[0] > margin:
        return f"Choose {best} here: it returns {gain} more than {cloning}, {count}."
    if interval[1] <= margin:
        return f"C{cloning[1:]} suffices here: {best} returns {gain} more, {count}."
    return f"Undecided: {best} returns {gain} more than {cloning}, {count}; more would tell."


def _scale(problem: Problem) -> float:
    """From a random policy's return to the best known, or the spread of methods' returns."""
    means = [method.estimates["return"].mean for method in problem.ranked]
    best = max([*means, problem.references.get("reference_return", -math.inf)])
    return best - min([*means, problem.references.get("random_return", math.inf)])


def sizes(problem: Problem) -> str:
    episodes = [facts.get("episodes") for facts in problem.datasets.values()]
    known = sorted(count for count in episodes if count is not None)
    words = f"{counted(len(problem.runs), 'run')}, {counted(len(problem.datasets), 'dataset')}"
    if not known:
        return f"{words}."
    if known[0] == known[-1]:
        return f"{words} of {counted(known[0], 'episode')}."
    return f"{words} of {known[0]:,} to {known[-1]:,} episodes."


def training(problem: Problem) -> str:
    """How long runs are and how often their targets were copied."""
    steps: list[Any] = [run.field("steps") for run in problem.runs]
    periods: list[Any] = [run.field("target_period") for run in problem.runs]
    if not all(type(count) is int for count in (*steps, *periods)):
        return ""
    updates, copies = table.span(steps), table.span(periods)
    return f"{updates} updates a run; the target network is copied every {copies}."


def _listing(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
