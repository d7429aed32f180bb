"""Effects: paired differences in a measure, by recording, each environment counting alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rbve.paper.finals import SCORE, Final, Finals, Problem, aligned, on_other_datasets
from rbve.report import labels
from rbve.report.across import Interval, mean_interval
from rbve.report.statistics import Floats


@dataclass(frozen=True)
class Pick:
    """A method, with those of its settings that matter to the claim; others are chosen."""

    algorithm: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def matches(self, final: Final) -> bool:
        return final.algorithm == self.algorithm and all(
            final.setting(name) == value for name, value in self.settings.items()
        )


STANDARDISED = {"normalise": "dataset"}  # V̂ of ranking methods
METHODS = {
    name: Pick(algorithm, STANDARDISED if algorithm in ("rbve", "rdqn") else {})
    for algorithm, (name, _) in labels.METHODS.items()
} | {"R2D2": Pick("dqn"), "R-R2D2": Pick("rdqn", STANDARDISED)}

Method = str | Pick  # by its name in METHODS, or with settings of its own
Methods = Iterable[str] | Mapping[str, Pick]
Pairs = Mapping[str, tuple[Method, Method]]  # what is compared, by its name
Where = Callable[[Problem], bool]
Kinds = tuple[Problem, Problem]  # of data: what is compared with what
Gaps = dict[str, Floats]  # recordings of one kind -> a difference for each


def pick(method: Method) -> Pick:
    """'DDQN (R-BVE)' and 'DDQN, below' are DDQN."""
    if isinstance(method, Pick):
        return method
    return METHODS[method.partition(" (")[0].partition(",")[0]]


def picks(methods: Methods) -> dict[str, Pick]:
    """By the names a claim gives them."""
    return dict(methods) if isinstance(methods, Mapping) else {each: pick(each) for each in methods}


def identity(value: Floats) -> Floats:
    return value


class Quantity(NamedTuple):
    """What is compared: a measure, and the scale on which differences are taken."""

    measure: str = SCORE
    scale: Callable[[Floats], Floats] = identity


NORMALISED_SCORE = Quantity()


def values(
    finals: Finals, method: Method, problem: Problem, measure: str = SCORE
) -> dict[int, float]:
    """dataset -> value, the setting chosen by score on the other datasets."""
    matches = pick(method).matches
    own = [each for each in finals if each.problem == problem and matches(each)]
    return on_other_datasets(own, measure, SCORE)


def problems(finals: Finals, where: Where) -> list[Problem]:
    return sorted({each.problem for each in finals if where(each.problem)}, key=lambda p: p.label)


def matched(finals: Finals, there: Where, here: Where) -> list[Kinds]:
    """Two kinds of data each, of one environment."""
    return [
        (first, second)
        for first in problems(finals, there)
        for second in problems(finals, here)
        if first.env == second.env
    ]


def differences(
    finals: Finals, pairs: Pairs, where: Where, quantity: Quantity = NORMALISED_SCORE
) -> dict[str, Interval]:
    """First − second of each pair that some kind of data has."""
    kinds = [(problem, problem) for problem in problems(finals, where)]
    tasks = {name: gaps(finals, pair, kinds, quantity) for name, pair in pairs.items()}
    return {name: mean_interval(each) for name, each in tasks.items() if each}


def gaps(
    finals: Finals,
    pair: tuple[Method, Method],
    kinds: Sequence[Kinds],
    quantity: Quantity = NORMALISED_SCORE,
) -> Gaps:
    """The first method on the first kind of data − the second on the second."""
    measure, scale = quantity
    return _by_recording(
        (both, lambda a, b: scale(a) - scale(b), [
            values(finals, method, kind, measure) for method, kind in zip(pair, both, strict=True)
        ])
        for both in kinds
    )  # fmt: skip


def excess(
    finals: Finals,
    pair: tuple[Method, Method],
    kinds: Sequence[Kinds],
    fold: Callable[[Floats], Floats] = identity,
) -> Gaps:
    """How much more the first's score changes between kinds of data than the second's."""
    return _by_recording(
        (both, lambda a, b, c, d: fold(a - b) - fold(c - d), [
            values(finals, method, kind) for method in pair for kind in both
        ])
        for both in kinds
    )  # fmt: skip


def _together(
    combine: Callable[..., Floats], groups: Sequence[dict[int, float]]
) -> dict[int, float]:
    """Of the datasets all groups have."""
    seeds = sorted(set.intersection(*map(set, groups)))
    return dict(zip(seeds, combine(*aligned(*groups)), strict=True))


def _by_recording(
    parts: Iterable[tuple[Kinds, Callable[..., Floats], Sequence[dict[int, float]]]],
) -> Gaps:
    """One number for each recording, the mean over what was kept of it.

    Shares of one recording are not independent, and resampling takes them to be.
    """
    by_name: dict[str, list[dict[int, float]]] = {}
    for kinds, combine, groups in parts:
        if gap := _together(combine, groups):
            name = " − ".join(dict.fromkeys(kind.recording for kind in kinds))
            by_name.setdefault(name, []).append(gap)
    means = {
        name: _together(lambda *each: np.mean(each, axis=0), own) for name, own in by_name.items()
    }
    return {name: np.array(list(own.values())) for name, own in means.items() if own}
