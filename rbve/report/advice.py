"""Is cloning enough on a problem, or is another method worth it? One sentence, from its runs.

Behaviour cloning (BC) is compared with the best method that learns values, on the datasets that
both were trained on: the difference of their returns on each dataset, its mean and its 95% Student
interval over datasets. A difference below `MARGIN` of the way from random to the best return
known is too small to matter.
"""

from __future__ import annotations

import math

import numpy as np

from rbve.report import table
from rbve.report.statistics import Floats, student_interval
from rbve.report.summary import Method, Problem

_CLONING = {"bc", "filtered_bc"}
MARGIN = 0.05


def advice(problem: Problem) -> str | None:
    """Says which to choose.

    Returns:
        A sentence, or None where BC and a method that learns values do not share two datasets.
    """
    clones = [method for method in problem.ranked if method.algorithm == "bc"]
    others = [method for method in problem.ranked if method.algorithm not in _CLONING]
    if not clones or not others:
        return None
    clone, best = clones[0], others[0]
    differences = _differences(best, clone)
    interval = student_interval(differences)
    if interval is None:
        return None
    places = table.return_places(problem)
    low, high = (table.number(each, places) for each in interval)
    mean = table.number(float(differences.mean()), places)
    gain = f"{mean} [{low}, {high}]"
    count = f"over {len(differences)} datasets"
    margin = MARGIN * _scale(problem)
    if interval[0] > margin:
        return f"Choose {best.name} here: it returns {gain} more than cloning (BC), {count}."
    if interval[1] <= margin:
        return f"Cloning (BC) suffices here: {best.name} returns {gain} more, {count}."
    return (
        f"Undecided: {best.name} returns {gain} more than cloning (BC), {count}; more would tell."
    )


def _differences(first: Method, second: Method) -> Floats:
    """Of mean final returns on each dataset that both have."""
    returns = [_by_dataset(first), _by_dataset(second)]
    shared = [name for name in returns[0] if name in returns[1]]
    return np.array([returns[0][name] - returns[1][name] for name in shared], np.float64)


def _by_dataset(method: Method) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for dataset, value in zip(method.datasets, method.finals("return"), strict=True):
        if value is not None and math.isfinite(value):
            values.setdefault(dataset, []).append(value)
    return {dataset: float(np.mean(each)) for dataset, each in values.items()}


def _scale(problem: Problem) -> float:
    """From a random policy's return to the best known, or the spread of methods' returns."""
    means = [method.estimates["return"].mean for method in problem.ranked]
    best = max([*means, problem.references.get("reference_return", -math.inf)])
    return best - min([*means, problem.references.get("random_return", math.inf)])
