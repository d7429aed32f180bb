"""Effects: paired differences in a measure, by recording, each environment counting alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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

    def matches(self, final: Final) -> bool:
        return final.algorithm == self.algorithm and all(
            final.setting(name) == value for name, value in self.settings.items()
        )


def identity(value: Floats) -> Floats:
    return value


class Quantity(NamedTuple):
    """What is compared: a measure, and the scale on which differences are taken."""

    measure: str = SCORE
    scale: Callable[[Floats], Floats] = identity


NORMALISED_SCORE = Quantity()


def values(
    finals: Sequence[Final], pick: Pick, problem: Problem, measure: str = SCORE
) -> dict[int, float]:
    """dataset -> value, the setting chosen by score on the other datasets."""
    own = [each for each in finals if each.problem == problem and pick.matches(each)]
    return on_other_datasets(own, measure, SCORE)


def problems(finals: Sequence[Final], where: Where) -> list[Problem]:
    return sorted({each.problem for each in finals if where(each.problem)}, key=lambda p: p.label)


def same(finals: Sequence[Final], where: Where) -> list[Kinds]:
    return [(problem, problem) for problem in problems(finals, where)]


def matched(finals: Sequence[Final], there: Where, here: Where) -> list[Kinds]:
    """Two kinds of data each, of one environment."""
    return [
        (first, second)
        for first in problems(finals, there)
        for second in problems(finals, here)
        if first.env == second.env
    ]


def difference(
    finals: Sequence[Final],
    ours: Pick,
    theirs: Pick,
    where: Where,
    quantity: Quantity = NORMALISED_SCORE,
) -> Interval | None:
    """Ours − theirs; None where no kind of data has both."""
    tasks = gaps(finals, ours, theirs, same(finals, where), quantity)
    return mean_interval(tasks) if tasks else None


def differences(
    finals: Sequence[Final],
    pairs: Mapping[str, tuple[Pick, Pick]],
    where: Where,
    quantity: Quantity = NORMALISED_SCORE,
) -> dict[str, Interval]:
    """First − second of each pair that has runs."""
    effects = {name: difference(finals, *pair, where, quantity) for name, pair in pairs.items()}
    return {name: effect for name, effect in effects.items() if effect is not None}


def gaps(
    finals: Sequence[Final],
    ours: Pick,
    theirs: Pick,
    kinds: Sequence[Kinds],
    quantity: Quantity = NORMALISED_SCORE,
) -> Gaps:
    """Ours on the first kind of data − theirs on the second."""
    measure, scale = quantity
    return _by_recording(
        (
            pair,
            _together(
                lambda a, b: scale(a) - scale(b),
                values(finals, ours, pair[0], measure),
                values(finals, theirs, pair[1], measure),
            ),
        )
        for pair in kinds
    )


def excess(
    finals: Sequence[Final],
    ours: Pick,
    theirs: Pick,
    kinds: Sequence[Kinds],
    fold: Callable[[Floats], Floats] = identity,
) -> Gaps:
    """How much more our score changes from one kind of data to another than theirs."""
    return _by_recording(
        (
            pair,
            _together(
                lambda a, b, c, d: fold(a - b) - fold(c - d),
                *(values(finals, pick, kind) for pick in (ours, theirs) for kind in pair),
            ),
        )
        for pair in kinds
    )


def _together(combine: Callable[..., Floats], *groups: dict[int, float]) -> dict[int, float]:
    """Of the datasets all groups have."""
    seeds = sorted(set.intersection(*map(set, groups)))
    return dict(zip(seeds, combine(*aligned(*groups)), strict=True))


def _by_recording(differences: Iterable[tuple[Kinds, dict[int, float]]]) -> Gaps:
    """One number for each recording, the mean over what was kept of it.

    Shares of one recording are not independent, and resampling takes them to be.
    """
    parts: dict[str, list[dict[int, float]]] = {}
    for pair, gap in differences:
        if gap:
            name = " − ".join(dict.fromkeys(kind.recording for kind in pair))
            parts.setdefault(name, []).append(gap)
    means = {
        name: _together(lambda *each: np.mean(each, axis=0), *own) for name, own in parts.items()
    }
    return {name: np.array(list(own.values())) for name, own in means.items() if own}
