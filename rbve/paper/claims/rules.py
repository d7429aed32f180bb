"""The rules claims are judged by: what is compared with what. What verdicts mean: verdicts.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from rbve.paper.claims.verdicts import (
    Judgement,
    Verdict,
    careful,
    judged,
    lacking,
    listed,
    shown,
    side_of,
    signed,
    told,
)
from rbve.paper.effects import (
    SCORE,
    Gaps,
    Pick,
    Where,
    difference,
    excess,
    gaps,
    identity,
    matched,
    problems,
    same,
    values,
)
from rbve.paper.finals import Final
from rbve.report.across import Interval, mean_interval
from rbve.report.statistics import Floats


def better(
    found: Sequence[Final],
    ours: Pick,
    others: Mapping[str, Pick],
    where: Where,
    measure: str = SCORE,
    sign: int = 1,
    scale: Callable[[Floats], Floats] = identity,
    least: float = 0.0,
) -> Judgement:
    """Ours above (sign 1) or below (−1) each of the others, as judged() says."""
    effects = compared(found, ours, others, where, measure, scale)
    if len(effects) < len(others):
        return lacking(others, effects)
    return judged(effects, sign, "against ", least)


def compared(
    found: Sequence[Final],
    ours: Pick,
    others: Mapping[str, Pick],
    where: Where,
    measure: str = SCORE,
    scale: Callable[[Floats], Floats] = identity,
) -> dict[str, Interval]:
    """Ours − each of the others that has runs."""
    effects = {
        name: difference(found, ours, other, where, measure, scale)
        for name, other in others.items()
    }
    return {name: effect for name, effect in effects.items() if effect is not None}


def better_everywhere(
    found: Sequence[Final],
    ours: Pick,
    others: Mapping[str, Pick],
    where: Where,
    measure: str = SCORE,
    sign: int = 1,
    scale: Callable[[Floats], Floats] = identity,
) -> Judgement:
    """Ours above or below each of the others on every kind of data by itself, as judged() says."""
    overall = better(found, ours, others, where, measure, sign, scale)
    if overall.verdict == "not run":
        return overall
    kinds = problems(found, where)
    apart = {
        f"{name}, {kind.label}": effect
        for kind in kinds
        for name, effect in compared(found, ours, others, kind.__eq__, measure, scale).items()
    }
    if len(apart) < len(kinds) * len(others):
        return Judgement("not run", "some of " + listed(others) + " lack runs on some data")
    above = sum(effect.low > 0 for effect in apart.values())
    below = sum(effect.high < 0 for effect in apart.values())
    clear, against = (above, below) if sign > 0 else (below, above)
    words = (
        f"of {len(apart)} comparisons {clear} clearly for it, {against} clearly against it; "
        f"on average {told(overall.effects, 'against ')}"
    )
    return careful(Judgement(side_of(0, apart, sign), words, apart))


def ordered(
    found: Sequence[Final],
    picks: Mapping[str, Pick],
    where: Where,
    measure: str,
    scale: Callable[[Floats], Floats] = identity,
) -> Judgement:
    """Each larger than the next; the steps as judged() says."""
    names = list(picks)
    steps = {
        f"{first} − {second}": effect
        for first, second in pairwise(names)
        if (effect := difference(found, picks[first], picks[second], where, measure, scale))
        is not None
    }
    if len(steps) < len(names) - 1:
        return Judgement("not run", "not all of " + listed(names) + " were run")
    return judged(steps, 1)


def rising(
    found: Sequence[Final],
    picks: Sequence[tuple[str, Pick]],
    where: Where,
    measure: str,
    sign: int = 1,
    scale: Callable[[Floats], Floats] = identity,
) -> Judgement:
    """A measure rises (sign 1) or falls (−1) along the picks.

    Reproduced: last − first is clear and no step is clearly the other way. Partly: last − first is
    clear, or points the right way with no step clearly against it.
    """
    (first_name, first), (last_name, last) = picks[0], picks[-1]
    ends = difference(found, last, first, where, measure, scale)
    if ends is None:
        return Judgement("not run", "the ends were not run on the same data")
    steps = [
        effect
        for (_, a), (_, b) in pairwise(picks)
        if (effect := difference(found, b, a, where, measure, scale)) is not None
    ]
    against = sum(e.high < 0 if sign > 0 else e.low > 0 for e in steps)
    clear = ends.low > 0 if sign > 0 else ends.high < 0
    verdict: Verdict = "not here"
    if clear and not against:
        verdict = "reproduced"
    elif clear or (ends.value * sign > 0 and not against):
        verdict = "partly"
    words = f"{last_name} − {first_name}: {shown(ends)}; {against} of {len(steps)} steps against it"
    return careful(Judgement(verdict, words, {f"{last_name} − {first_name}": ends}))


def between(
    found: Sequence[Final],
    picks: Mapping[str, Pick],
    there: Where,
    here: Where,
    measure: str,
    sign: int = 1,
    scale: Callable[[Floats], Floats] = identity,
    least: float = 0.0,
) -> Judgement:
    """A measure is larger (sign 1) or smaller (−1) on one kind of data than on another.

    Kinds are paired by environment, datasets by seed; then as judged() says.
    """
    kinds = matched(found, there, here)
    effects = {
        name: mean_interval(each)
        for name, pick in picks.items()
        if (each := gaps(found, pick, pick, kinds, measure, scale))
    }
    if len(effects) < len(picks):
        return lacking(picks, effects)
    return judged(effects, sign, least=least)


def similar(
    found: Sequence[Final], ours: Pick, others: Mapping[str, Pick], where: Where, margin: float
) -> Judgement:
    """Scores within a margin of each other, as near() says."""
    kinds = same(found, where)
    return near({name: gaps(found, ours, other, kinds) for name, other in others.items()}, margin)


def alike(
    found: Sequence[Final],
    picks: Mapping[str, Pick],
    there: Where,
    here: Where,
    margin: float,
    other: Pick | None = None,
) -> Judgement:
    """A score on one kind of data is that (of another method) on another kind, as near() says."""
    kinds = matched(found, there, here)
    return near(
        {name: gaps(found, pick, other or pick, kinds) for name, pick in picks.items()}, margin
    )


def near(asked: Mapping[str, Gaps], margin: float) -> Judgement:
    """Reproduced: every interval within ±margin, and every environment's mean. Partly: every mean
    over environments, which may lie within because they cancel."""
    effects = {name: mean_interval(each) for name, each in asked.items() if each}
    if len(effects) < len(asked):
        return lacking(asked, effects)
    apart = {name: {kind: float(own.mean()) for kind, own in asked[name].items()} for name in asked}
    steady = all(abs(mean) <= margin for each in apart.values() for mean in each.values())
    verdict: Verdict = "not here"
    if steady and all(-margin <= e.low and e.high <= margin for e in effects.values()):
        verdict = "reproduced"
    elif all(abs(e.value) <= margin for e in effects.values()):
        verdict = "partly"
    words = "; ".join(
        f"{name} {shown(effects[name])}, apart: "
        + ", ".join(f"{short(kind)} {signed(mean)}" for kind, mean in each.items())
        for name, each in apart.items()
    )
    return careful(Judgement(verdict, words, effects))


def short(kinds: str) -> str:
    """Of two kinds of data, the environment they share."""
    return kinds.partition(",")[0] if " − " in kinds else kinds


def steadier(
    found: Sequence[Final],
    ours: Mapping[str, Pick],
    others: Mapping[str, Pick],
    there: Where,
    here: Where,
) -> Judgement:
    """The score of ours changes less, up or down, between two kinds of data than the others'."""
    return moving(found, ours, others, there, here, np.abs, -1)


def widens(
    found: Sequence[Final],
    ours: Mapping[str, Pick],
    others: Mapping[str, Pick],
    there: Where,
    here: Where,
) -> Judgement:
    """Ours leads the others by more on one kind of data than on another."""
    return moving(found, ours, others, there, here, identity, 1)


def moving(
    found: Sequence[Final],
    ours: Mapping[str, Pick],
    others: Mapping[str, Pick],
    there: Where,
    here: Where,
    fold: Callable[[Floats], Floats],
    sign: int,
) -> Judgement:
    effects = {}
    for name, pick in ours.items():
        for other, theirs in others.items():
            tasks = excess(found, pick, theirs, matched(found, there, here), fold)
            if not tasks:
                return Judgement("not run", f"no runs of {name} and {other} on both kinds of data")
            effects[f"{name} − {other}"] = mean_interval(tasks)
    return judged(effects, sign)


def reaches(
    found: Sequence[Final],
    picks: Mapping[str, Pick],
    where: Where,
    level: float,
    sign: int = 1,
    measure: str = SCORE,
) -> Judgement:
    """Means above (sign 1) or below (−1) a level, as side_of() says."""
    means = {}
    for name, pick in picks.items():
        held = [
            list(values(found, pick, problem, measure).values())
            for problem in problems(found, where)
        ]
        tasks = {str(k): np.array(each) for k, each in enumerate(held) if each}
        if tasks:
            means[name] = mean_interval(tasks)
    if len(means) < len(picks):
        return lacking(picks, means)
    return careful(Judgement(side_of(level, means, sign), told(means), means))
