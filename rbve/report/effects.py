"""Effects: paired differences in a measure, by dataset, each kind of data counting alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rbve.report.across import Interval, interval, mean_of_tasks
from rbve.report.finals import SCORE, Final, Problem, aligned, on_other_datasets
from rbve.report.statistics import Floats

Where = Callable[[Problem], bool]


@dataclass(frozen=True)
class Pick:
    """A method, with those of its settings that matter to the claim; others are chosen."""

    algorithm: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def fits(self, final: Final) -> bool:
        return final.algorithm == self.algorithm and all(
            final.setting(name) == value for name, value in self.settings.items()
        )


def values(
    found: Sequence[Final], pick: Pick, problem: Problem, measure: str, choose_by: str = SCORE
) -> dict[int, float]:
    """dataset -> value, the setting chosen on the other datasets."""
    mine = [each for each in found if each.problem == problem and pick.fits(each)]
    return on_other_datasets(mine, measure, choose_by)


def problems(found: Sequence[Final], where: Where) -> list[Problem]:
    return sorted({each.problem for each in found if where(each.problem)}, key=lambda p: p.label)


def identity(value: Floats) -> Floats:
    return value


def difference(
    found: Sequence[Final],
    ours: Pick,
    theirs: Pick,
    where: Where,
    measure: str = SCORE,
    scale: Callable[[Floats], Floats] = identity,
) -> Interval | None:
    """Ours − theirs; None where no kind of data has both."""
    pairs = {}
    for problem in problems(found, where):
        mine, other = aligned(
            values(found, ours, problem, measure), values(found, theirs, problem, measure)
        )
        gap = scale(mine) - scale(other)
        if len(gap):
            pairs[problem.label] = gap
    if not pairs:
        return None
    return interval(pairs, mean_of_tasks)


def changes(
    found: Sequence[Final],
    ours: Pick,
    theirs: Pick,
    there: Where,
    here: Where,
    measure: str = SCORE,
    scale: Callable[[Floats], Floats] = identity,
) -> dict[str, Floats]:
    """Ours on one kind of data − theirs on another, dataset by dataset, by pair of kinds."""
    pairs = {}
    for first, second in matched(found, there, here):
        a, b = aligned(values(found, ours, first, measure), values(found, theirs, second, measure))
        if len(a):
            pairs[f"{first.label} − {second.label}"] = scale(a) - scale(b)
    return pairs


def matched(found: Sequence[Final], there: Where, here: Where) -> list[tuple[Problem, Problem]]:
    return [
        (first, second)
        for first in problems(found, there)
        for second in problems(found, here)
        if first.env == second.env
    ]


def excess(
    found: Sequence[Final],
    ours: Pick,
    theirs: Pick,
    there: Where,
    here: Where,
    fold: Callable[[Floats], Floats] = identity,
) -> Interval | None:
    """How much more our score changes from one kind of data to another than theirs."""
    pairs = {}
    for kinds in matched(found, there, here):
        a, b, c, d = aligned(
            *(values(found, pick, kind, SCORE) for pick in (ours, theirs) for kind in kinds)
        )
        if len(a):
            pairs[" − ".join(kind.label for kind in kinds)] = fold(a - b) - fold(c - d)
    return interval(pairs, mean_of_tasks) if pairs else None
