"""Scores of every method on every problem, its setting chosen in two ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rbve.paper.finals import SCORE, Final, Problem, best_of_all, by_setting, on_other_datasets
from rbve.paper.pages.gather import Shown, Study, by_method, by_problem

OTHERS, BEST = "setting chosen on other datasets", "best setting of all, the paper's way"
ONE = "one setting a method"  # where there was nothing to choose
COLOURS = {OTHERS: "#0072B2", BEST: "#D55E00"}


class Result(NamedTuple):
    """A method on a problem."""

    method: Shown
    others: dict[int, float]  # dataset -> score; empty where no setting ran on all datasets
    best: dict[int, float]
    finals: list[Final]


Results = Mapping[Problem, Sequence[Result]]


def results(finals: Iterable[Final]) -> dict[Problem, list[Result]]:
    return {
        problem: [
            Result(
                method,
                on_other_datasets(mine, SCORE, SCORE),
                best_of_all(mine, SCORE, SCORE),
                mine,
            )
            for method, mine in by_method(own).items()
        ]
        for problem, own in by_problem(finals).items()
    }


def results_of(study: Study, name: str) -> dict[Problem, list[Result]]:
    """Of an experiment that compares methods; of others nothing."""
    return results(study.of(name)) if study.experiments[name].figure == "methods" else {}


def ways(results: Results) -> dict[str, str]:
    """Way a setting was chosen -> its words; where each method has but one, both are the same."""
    every = (each for own in results.values() for each in own)
    if any(len(by_setting(each.finals, SCORE)) > 1 for each in every):
        return {OTHERS: OTHERS, BEST: BEST}
    return {OTHERS: ONE}
