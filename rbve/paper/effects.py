"""Effects: paired differences in a measure, by recording, each environment counting alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rbve.paper.finals import SCORE, Final, Problem, aligned, on_other_datasets
from rbve.report.across import Interval, mean_interval
from rbve.report.statistics import Floats

Where = Callable[[Problem], bool]
Kinds = tuple[Problem, Problem]  # of data: what is compared with what
Gaps = dict[str, Floats]  # recordings of one kind -> a difference for each


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


def same(found: Sequence[Final], where: Where) -> list[Kinds]:
    return [(problem, problem) for problem in problems(found, where)]


def matched(found: Sequence[Final], there: Where, here: Where) -> list[Kinds]:
    """Two kinds of data each, of one environment."""
    return [
        (first, second)
        for first in problems(found, there)
        for second in problems(found, here)
        if first.env == second.env
    ]


def difference(
    found: Sequence[Final],
    ours: Pick,
    theirs: Pick,
    where: Where,
    measure: str = SCORE,
    scale: Callable[[Floats], Floats] = identity,
) -> Interval | None:
    """Ours − theirs; None where no kind of data has both."""
    tasks = gaps(found, ours, theirs, same(found, where), measure, scale)
    return mean_interval(tasks) if tasks else None


def gaps(
    found: Sequence[Final],
    ours: Pick,
    theirs: Pick,
    kinds: Sequence[Kinds],
    measure: str = SCORE,
    scale: Callable[[Floats], Floats] = identity,
) -> Gaps:
    """Ours on the first kind of data − theirs on the second."""
    return by_recording(
        (
            pair,
            together(
                lambda a, b: scale(a) - scale(b),
                values(found, ours, pair[0], measure),
                values(found, theirs, pair[1], measure),
            ),
        )
        for pair in kinds
    )


def excess(
    found: Sequence[Final],
    ours: Pick,
    theirs: Pick,
    kinds: Sequence[Kinds],
    fold: Callable[[Floats], Floats] = identity,
) -> Gaps:
    """How much more our score changes from one kind of data to another than theirs."""
    return by_recording(
        (
            pair,
            together(
                lambda a, b, c, d: fold(a - b) - fold(c - d),
                *(values(found, pick, kind, SCORE) for pick in (ours, theirs) for kind in pair),
            ),
        )
        for pair in kinds
    )


def together(combine: Callable[..., Floats], *groups: dict[int, float]) -> dict[int, float]:
    """Of the datasets all groups have."""
    seeds = sorted(set.intersection(*map(set, groups)))
    return dict(zip(seeds, combine(*aligned(*groups)), strict=True))


def by_recording(found: Iterable[tuple[Kinds, dict[int, float]]]) -> Gaps:
    """One number for each recording, the mean over what was kept of it.

    Shares of one recording are not independent, and resampling takes them to be.
    """
    parts: dict[str, list[dict[int, float]]] = {}
    for pair, gap in found:
        if gap:
            name = " − ".join(dict.fromkeys(kind.recording for kind in pair))
            parts.setdefault(name, []).append(gap)
    means = {
        name: together(lambda *each: np.mean(each, axis=0), *own) for name, own in parts.items()
    }
    return {name: np.array(list(own.values())) for name, own in means.items() if own}
