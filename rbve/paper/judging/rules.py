"""The rules claims are judged by: what is compared with what. What verdicts mean: verdicts.py.

A call makes a Rule, which judges final results: better("R-BVE", ["DDQN", "CQL"], quiet). Methods
go by the names of effects.METHODS, with words in brackets where a claim needs a name twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from itertools import pairwise
from typing import Concatenate, ParamSpec

import numpy as np

from rbve.paper.finals import SCORE, Final
from rbve.paper.judging import effects as of
from rbve.paper.judging.effects import NORMALISED_SCORE, Kinds, Method, Methods, Quantity, Where
from rbve.paper.judging.verdicts import (
    Judgement,
    by_sign,
    careful,
    graded,
    in_words,
    listed,
    missing,
    not_run,
    shown,
    side_of,
    signed,
    weakest,
)
from rbve.report.across import mean_interval
from rbve.report.statistics import Floats

Rule = Callable[[Sequence[Final]], Judgement]
Terms = ParamSpec("Terms")  # of a rule


def rule(judge: Callable[Concatenate[Sequence[Final], Terms], Judgement]) -> Callable[Terms, Rule]:
    """A function of results and terms as one of terms that makes a Rule."""

    @wraps(judge)
    def make(*terms: Terms.args, **more: Terms.kwargs) -> Rule:
        return lambda finals: judge(finals, *terms, **more)

    return make


@rule
def worst(finals: Sequence[Final], *rules: Rule) -> Judgement:
    """A claim of several parts: the weaker counts."""
    return weakest(*(rule(finals) for rule in rules))


@rule
def beside(finals: Sequence[Final], first: Rule, name: str, other: Rule) -> Judgement:
    """The first rule judges; what the other measured is reported as well."""
    judgement = first(finals)
    if judgement.verdict == "not run":
        return judgement
    words = f"{judgement.measured}; {name}: {other(finals).measured}"
    return replace(judgement, measured=words)


@rule
def better(
    finals: Sequence[Final],
    ours: Method,
    others: Methods,
    where: Where,
    quantity: Quantity = NORMALISED_SCORE,
    sign: int = 1,
    least: float = 0.0,
) -> Judgement:
    """Ours above (sign 1) or below (−1) each of the others, as by_sign() says."""
    pairs = {name: (ours, other) for name, other in of.picks(others).items()}
    effects = of.differences(finals, pairs, where, quantity)
    return missing(pairs, effects) or by_sign(effects, sign, "against ", least)


@rule
def better_everywhere(
    finals: Sequence[Final],
    ours: Method,
    others: Methods,
    where: Where,
    quantity: Quantity = NORMALISED_SCORE,
    sign: int = 1,
) -> Judgement:
    """Ours above or below each of the others on every kind of data by itself, as by_sign() says."""
    overall = better(ours, others, where, quantity, sign)(finals)
    if overall.verdict == "not run":
        return overall
    kinds = of.problems(finals, where)
    pairs = {name: (ours, other) for name, other in of.picks(others).items()}
    apart = {
        f"{name}, {kind.label}": effect
        for kind in kinds
        for name, effect in of.differences(finals, pairs, kind.__eq__, quantity).items()
    }
    if len(apart) < len(kinds) * len(pairs):
        return not_run("some of " + listed(pairs) + " lack runs on some data")
    above = sum(effect.low > 0 for effect in apart.values())
    below = sum(effect.high < 0 for effect in apart.values())
    clear, against = (above, below) if sign > 0 else (below, above)
    words = (
        f"of {len(apart)} comparisons {clear} clearly for it, {against} clearly against it; "
        f"on average {in_words(overall.effects, 'against ')}"
    )
    return careful(side_of(0, apart, sign), words, apart)


@rule
def ordered(
    finals: Sequence[Final], methods: Methods, where: Where, quantity: Quantity
) -> Judgement:
    """Each larger than the next; the steps as by_sign() says."""
    picks = of.picks(methods)
    pairs = {f"{a} − {b}": (picks[a], picks[b]) for a, b in pairwise(picks)}
    steps = of.differences(finals, pairs, where, quantity)
    if len(steps) < len(pairs):
        return not_run("not all of " + listed(picks) + " were run")
    return by_sign(steps, 1)


@rule
def rising(
    finals: Sequence[Final], methods: Methods, where: Where, quantity: Quantity, sign: int = 1
) -> Judgement:
    """A measure rises (sign 1) or falls (−1) along the methods.

    Reproduced: last − first is clear and no step is clearly the other way. Partly: last − first is
    clear, or points the right way with no step clearly against it.
    """
    picks = of.picks(methods)
    first, *_, last = picks
    ends = f"{last} − {first}"
    whole = of.differences(finals, {ends: (picks[last], picks[first])}, where, quantity)
    if not whole:
        return not_run("the ends were not run on the same data")
    pairs = {f"{b} − {a}": (picks[b], picks[a]) for a, b in pairwise(picks)}
    steps = of.differences(finals, pairs, where, quantity).values()
    against = sum(e.high < 0 if sign > 0 else e.low > 0 for e in steps)
    clear = whole[ends].low > 0 if sign > 0 else whole[ends].high < 0
    right = whole[ends].value * sign > 0
    words = f"{ends}: {shown(whole[ends])}; {against} of {len(steps)} steps against it"
    return careful(graded(clear and not against, clear or (right and not against)), words, whole)


@rule
def between(
    finals: Sequence[Final],
    methods: Methods,
    there: Where,
    here: Where,
    quantity: Quantity = NORMALISED_SCORE,
    sign: int = 1,
    least: float = 0.0,
) -> Judgement:
    """A measure is larger (sign 1) or smaller (−1) on one kind of data than on another.

    Kinds are paired by environment, datasets by seed; then as by_sign() says.
    """
    kinds, picks = of.matched(finals, there, here), of.picks(methods)
    tasks = {name: of.gaps(finals, (pick, pick), kinds, quantity) for name, pick in picks.items()}
    effects = {name: mean_interval(each) for name, each in tasks.items() if each}
    return missing(picks, effects) or by_sign(effects, sign, least=least)


@rule
def similar(
    finals: Sequence[Final], ours: Method, others: Methods, where: Where, margin: float
) -> Judgement:
    """Scores within a margin of each other, as _near() says."""
    pairs = {name: (of.pick(ours), other) for name, other in of.picks(others).items()}
    return _near(finals, pairs, [(kind, kind) for kind in of.problems(finals, where)], margin)


@rule
def alike(
    finals: Sequence[Final],
    methods: Methods,
    there: Where,
    here: Where,
    margin: float,
    other: Method | None = None,
) -> Judgement:
    """A score on one kind of data is that (of another method) on another kind, as _near() says."""
    picks = of.picks(methods)
    pairs = {name: (pick, of.pick(other) if other else pick) for name, pick in picks.items()}
    return _near(finals, pairs, of.matched(finals, there, here), margin)


def _near(
    finals: Sequence[Final], pairs: of.Pairs, kinds: Sequence[Kinds], margin: float
) -> Judgement:
    """Reproduced: every interval within ±margin, and every environment's mean. Partly: every mean
    over environments, which may lie within because they cancel."""
    tasks = {name: of.gaps(finals, pair, kinds) for name, pair in pairs.items()}
    effects = {name: mean_interval(each) for name, each in tasks.items() if each}
    if lacking := missing(pairs, effects):
        return lacking
    apart = {
        name: {kind: float(own.mean()) for kind, own in each.items()}
        for name, each in tasks.items()
    }
    steady = all(abs(mean) <= margin for each in apart.values() for mean in each.values())
    within = all(-margin <= e.low and e.high <= margin for e in effects.values())
    on_average = all(abs(e.value) <= margin for e in effects.values())
    words = "; ".join(
        f"{name} {shown(effects[name])}, apart: "
        + ", ".join(f"{_short(kind)} {signed(mean)}" for kind, mean in each.items())
        for name, each in apart.items()
    )
    return careful(graded(steady and within, on_average), words, effects)


def _short(kinds: str) -> str:
    """Of two kinds of data, the environment they share."""
    return kinds.partition(",")[0] if " − " in kinds else kinds


@rule
def steadier(
    finals: Sequence[Final], ours: str, others: Methods, there: Where, here: Where
) -> Judgement:
    """The score of ours changes less, up or down, between two kinds of data than the others'."""
    return _changes(finals, ours, others, of.matched(finals, there, here), np.abs, -1)


@rule
def widens(
    finals: Sequence[Final], ours: str, others: Methods, there: Where, here: Where
) -> Judgement:
    """Ours leads the others by more on one kind of data than on another."""
    return _changes(finals, ours, others, of.matched(finals, there, here), of.identity, 1)


def _changes(
    finals: Sequence[Final],
    ours: str,
    others: Methods,
    kinds: Sequence[Kinds],
    fold: Callable[[Floats], Floats],
    sign: int,
) -> Judgement:
    effects = {}
    for name, other in of.picks(others).items():
        tasks = of.excess(finals, (of.pick(ours), other), kinds, fold)
        if not tasks:
            return not_run(f"no runs of {ours} and {name} on both kinds of data")
        effects[f"{ours} − {name}"] = mean_interval(tasks)
    return by_sign(effects, sign)


@rule
def reaches(
    finals: Sequence[Final],
    methods: Methods,
    where: Where,
    level: float,
    sign: int = 1,
    measure: str = SCORE,
) -> Judgement:
    """Means above (sign 1) or below (−1) a level, as side_of() says."""
    picks, means = of.picks(methods), {}
    for name, pick in picks.items():
        tasks = {
            kind.label: np.array(list(own.values()))
            for kind in of.problems(finals, where)
            if (own := of.values(finals, pick, kind, measure))
        }
        if tasks:
            means[name] = mean_interval(tasks)
    return missing(picks, means) or careful(side_of(level, means, sign), in_words(means), means)
