"""The rules claims are judged by: what is compared with what. What verdicts mean: verdicts.py.

A call makes a Rule, which judges final results: better("R-BVE", ["DDQN", "CQL"], quiet). Methods
go by the names of effects.METHODS, with words in brackets where a claim needs a name twice.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from itertools import pairwise
from typing import Concatenate, ParamSpec

import numpy as np

from rbve.paper.finals import SCORE, Finals
from rbve.paper.judging import _effects as of
from rbve.paper.judging import verdicts
from rbve.paper.judging._effects import NORMALISED_SCORE, Method, Methods, Quantity, Where
from rbve.paper.judging.verdicts import Judgement, by_sign, careful, missing, not_run, shown
from rbve.report.statistics import Floats, mean_interval

_FROM_WEAKEST = ("not run", "not reproduced", "partly", "reproduced")

Rule = Callable[[Finals], Judgement]
_Terms = ParamSpec("_Terms")  # of a rule


def rule(judge: Callable[Concatenate[Finals, _Terms], Judgement]) -> Callable[_Terms, Rule]:
    """A function of results and terms as one of terms that makes a Rule."""

    @wraps(judge)
    def make(*terms: _Terms.args, **more: _Terms.kwargs) -> Rule:
        return lambda finals: judge(finals, *terms, **more)

    return make


@rule
def worst(finals: Finals, *rules: Rule) -> Judgement:
    """A claim of several parts is as good as its weakest."""
    parts = [rule(finals) for rule in rules]
    verdict = min((part.verdict for part in parts), key=_FROM_WEAKEST.index)
    effects = {name: effect for part in parts for name, effect in part.effects.items()}
    words = "; ".join(part.measured for part in parts)
    return Judgement(verdict, words, effects, parts=tuple(parts))


@rule
def beside(finals: Finals, first: Rule, name: str, other: Rule) -> Judgement:
    """The first rule judges; what the other measured is reported as well."""
    judgement = first(finals)
    if judgement.verdict == "not run":
        return judgement
    # A copy: what the other looks at does not bear on the verdict.
    words = f"{judgement.measured}; {name}: {other(list(finals)).measured}"
    return replace(judgement, measured=words)


def _against(ours: Method, others: Methods) -> of.Pairs:
    return {name: (ours, other) for name, other in of.picks(others).items()}


@rule
def better(
    finals: Finals,
    ours: Method,
    others: Methods,
    where: Where,
    quantity: Quantity = NORMALISED_SCORE,
    sign: int = 1,
    least: float = 0.0,
) -> Judgement:
    """Ours above (sign 1) or below (−1) each of the others, as by_sign() says."""
    pairs = _against(ours, others)
    effects = of.differences(finals, pairs, where, quantity)
    return missing(pairs, effects) or by_sign(effects, sign, "against ", least, quantity.tolerance)


@rule
def better_everywhere(
    finals: Finals,
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
    kinds, pairs = of.problems(finals, where), _against(ours, others)
    apart = {
        f"{name}, {kind.label}": effect
        for kind in kinds
        for name, effect in of.differences(finals, pairs, kind.__eq__, quantity).items()
    }
    if len(apart) < len(kinds) * len(pairs):
        return not_run("some of " + verdicts.listed(pairs) + " lack runs on some data")
    clear, against = verdicts.clear(apart, sign), verdicts.clear(apart, -sign)
    words = (
        f"of {len(apart)} comparisons {clear} clearly for it, {against} clearly against it; "
        f"on average {verdicts.in_words(overall.effects, 'against ')}"
    )
    side = verdicts.side_of(0, apart, sign)
    return careful(side, words, apart, tolerance=quantity.tolerance)


@rule
def ordered(finals: Finals, methods: Methods, where: Where, quantity: Quantity) -> Judgement:
    """Each larger than the next; the steps as by_sign() says."""
    picks = of.picks(methods)
    pairs = {f"{a} − {b}": (picks[a], picks[b]) for a, b in pairwise(picks)}
    steps = of.differences(finals, pairs, where, quantity)
    if len(steps) < len(pairs):
        return not_run("not all of " + verdicts.listed(picks) + " were run")
    return by_sign(steps, 1, tolerance=quantity.tolerance)


@rule
def rising(
    finals: Finals, methods: Methods, where: Where, quantity: Quantity, sign: int = 1
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
    steps = of.differences(finals, pairs, where, quantity)
    against, clear = verdicts.clear(steps, -sign), verdicts.clear(whole, sign) == 1
    right = whole[ends].value * sign > 0 and not against
    words = f"{ends}: {shown(whole[ends])}; {against} of {len(steps)} steps against it"
    verdict = verdicts.graded(clear and not against, clear or right)
    return careful(verdict, words, whole, tolerance=quantity.tolerance)


@rule
def between(
    finals: Finals,
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
    pairs = {name: (pick, pick) for name, pick in of.picks(methods).items()}
    effects = of.differences(finals, pairs, of.matched(finals, there, here), quantity)
    return missing(pairs, effects) or by_sign(
        effects, sign, least=least, tolerance=quantity.tolerance
    )


@rule
def similar(
    finals: Finals, ours: Method, others: Methods, where: Where, margin: float
) -> Judgement:
    """Scores within a margin of each other, as _near() says."""
    return _near(finals, _against(ours, others), where, margin)


@rule
def alike(
    finals: Finals,
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


def _near(finals: Finals, pairs: of.Pairs, data: of.Data, margin: float) -> Judgement:
    """Reproduced: every interval within ±margin, and every environment's mean. Partly: every mean
    over environments, which may lie within because they cancel."""
    tasks = {name: of.gaps(finals, pair, data) for name, pair in pairs.items()}
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
        # Of two kinds of data, the environment they share.
        + ", ".join(
            f"{kind.partition(',')[0] if ' − ' in kind else kind} {verdicts.signed(mean)}"
            for kind, mean in each.items()
        )
        for name, each in apart.items()
    )
    verdict = verdicts.graded(steady and within, on_average)
    return careful(verdict, words, effects, borders=(-margin, margin))


@rule
def _changes(
    finals: Finals,
    ours: str,
    others: Methods,
    there: Where,
    here: Where,
    *,
    fold: Callable[[Floats], Floats],
    sign: int,
) -> Judgement:
    kinds, effects = of.matched(finals, there, here), {}
    for name, other in of.picks(others).items():
        tasks = of.excess(finals, (of.pick(ours), other), kinds, fold)
        if not tasks:
            return not_run(f"no runs of {ours} and {name} on both kinds of data")
        effects[f"{ours} − {name}"] = mean_interval(tasks)
    return by_sign(effects, sign)


# The score of ours changes less, up or down, between two kinds of data than the others'.
steadier = partial(_changes, fold=np.abs, sign=-1)
# Ours leads the others by more on one kind of data than on another.
widens = partial(_changes, fold=np.positive, sign=1)


@rule
def reaches(
    finals: Finals,
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
    if lacking := missing(picks, means):
        return lacking
    side = verdicts.side_of(level, means, sign)
    return careful(side, verdicts.in_words(means), means, borders=(level,))
