"""Effects: paired differences in a measure, by recording, each environment counting alike."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from rbve.paper.finals import SCORE, Final, Finals, Problem, on_other_datasets
from rbve.paper.judging.verdicts import POINTS
from rbve.report import labels
from rbve.report.statistics import Floats, Interval, mean_interval


@dataclass(frozen=True)
class Pick:
    """A method, with those of its settings that matter to the claim; others are chosen."""

    algorithm: str
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

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
_Pair = tuple[Method, Method]
Pairs = Mapping[str, _Pair]  # what is compared, by its name
Where = Callable[[Problem], bool]
_Kinds = tuple[Problem, Problem]  # of data: what is compared with what
Data = Where | Sequence[_Kinds]  # Where: each kind of data with itself
_Gaps = dict[str, Floats]  # recordings of one kind -> a difference for each


def pick(method: Method) -> Pick:
    """'DDQN (R-BVE)' and 'DDQN, below' are DDQN."""
    if isinstance(method, Pick):
        return method
    return METHODS[method.partition(" (")[0].partition(",")[0]]


def picks(methods: Methods) -> dict[str, Pick]:
    """By the names a claim gives them."""
    return dict(methods) if isinstance(methods, Mapping) else {each: pick(each) for each in methods}


class Quantity(NamedTuple):
    """What is compared: a measure, and the scale on which differences are taken."""

    measure: str = SCORE
    scale: Callable[[Floats], Floats] = np.positive  # as they are
    tolerance: float = POINTS  # on that scale: a difference so small counts as none


class Evidence(list[Final]):
    """Final results that notes which of them a rule looks at."""

    def __init__(self, finals: Finals) -> None:
        super().__init__(finals)
        self.used: dict[tuple[Pick, Problem], list[Final]] = {}


NORMALISED_SCORE = Quantity()


def values(
    finals: Finals, method: Method, problem: Problem, measure: str = SCORE
) -> dict[int, float]:
    """dataset -> value, the setting chosen by score on the other datasets."""
    asked = pick(method)
    own = [each for each in finals if each.problem == problem and asked.matches(each)]
    if own and isinstance(finals, Evidence):
        finals.used[asked, problem] = own
    return on_other_datasets(own, measure, SCORE)


def problems(finals: Finals, where: Where) -> list[Problem]:
    return sorted({each.problem for each in finals if where(each.problem)}, key=lambda p: p.label)


def matched(finals: Finals, there: Where, here: Where) -> list[_Kinds]:
    """Two kinds of data each, of one environment."""
    pairs = product(problems(finals, there), problems(finals, here))
    return [(first, second) for first, second in pairs if first.env == second.env]


def differences(
    finals: Finals, pairs: Pairs, data: Data, quantity: Quantity = NORMALISED_SCORE
) -> dict[str, Interval]:
    """First − second of each pair that some kind of data has."""
    tasks = {name: gaps(finals, pair, data, quantity) for name, pair in pairs.items()}
    return {name: mean_interval(each) for name, each in tasks.items() if each}


def gaps(finals: Finals, pair: _Pair, data: Data, quantity: Quantity = NORMALISED_SCORE) -> _Gaps:
    """The first method on the first kind of data − the second on the second."""
    kinds = [(kind, kind) for kind in problems(finals, data)] if callable(data) else data
    parts = [
        (both, [values(finals, *each, quantity.measure) for each in zip(pair, both, strict=True)])
        for both in kinds
    ]
    return _by_recording(parts, lambda a, b: quantity.scale(a) - quantity.scale(b))


def excess(
    finals: Finals, pair: _Pair, kinds: Sequence[_Kinds], fold: Callable[[Floats], Floats]
) -> _Gaps:
    """How much more the first's score changes between kinds of data than the second's."""
    parts = [(both, [values(finals, *each) for each in product(pair, both)]) for both in kinds]
    return _by_recording(parts, lambda a, b, c, d: fold(a - b) - fold(c - d))


def _by_recording(
    parts: Iterable[tuple[_Kinds, Sequence[dict[int, float]]]], combine: Callable[..., Floats]
) -> _Gaps:
    """One number for each recording, the mean over what was kept of it.

    Shares of one recording are not independent, and resampling takes them to be.
    """
    by_name: dict[str, list[dict[int, float]]] = {}
    for kinds, groups in parts:
        if gap := _together(combine, groups):
            name = " − ".join(dict.fromkeys(kind.recording for kind in kinds))
            by_name.setdefault(name, []).append(gap)
    means = {
        name: _together(lambda *each: np.mean(each, axis=0), own) for name, own in by_name.items()
    }
    return {name: np.array(list(own.values())) for name, own in means.items() if own}


def _together(
    combine: Callable[..., Floats], groups: Sequence[dict[int, float]]
) -> dict[int, float]:
    """Of the datasets all groups have."""
    seeds = sorted(set.intersection(*map(set, groups)))
    columns = [np.array([group[seed] for seed in seeds], np.float64) for group in groups]
    return dict(zip(seeds, combine(*columns), strict=True))
