"""The rules claims are judged by: what is compared with what. What verdicts mean: verdicts.py.

Each function here makes a Rule, which judges final results: better(RBVE, {"DDQN": DQN}, quiet).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from rbve.paper.finals import Final
from rbve.paper.judging.effects import (
    NORMALISED_SCORE,
    SCORE,
    Gaps,
    Kinds,
    Pick,
    Quantity,
    Where,
    differences,
    excess,
    gaps,
    identity,
    matched,
    problems,
    same,
    values,
)
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
Picks = Mapping[str, Pick]  # by the name a claim gives them


def worst(*rules: Rule) -> Rule:
    """A claim of several parts: the weaker counts."""
    return lambda finals: weakest(*(rule(finals) for rule in rules))


def beside(rule: Rule, name: str, other: Rule) -> Rule:
    """The first rule judges; what the other measured is reported as well."""

    def judge(finals: Sequence[Final]) -> Judgement:
        judgement = rule(finals)
        if judgement.verdict == "not run":
            return judgement
        words = f"{judgement.measured}; {name}: {other(finals).measured}"
        return replace(judgement, measured=words)

    return judge


def better(
    ours: Pick,
    others: Picks,
    where: Where,
    quantity: Quantity = NORMALISED_SCORE,
    sign: int = 1,
    least: float = 0.0,
) -> Rule:
    """Ours above (sign 1) or below (−1) each of the others, as by_sign() says."""

    def judge(finals: Sequence[Final]) -> Judgement:
        pairs = {name: (ours, other) for name, other in others.items()}
        effects = differences(finals, pairs, where, quantity)
        if len(effects) < len(others):
            return missing(others, effects)
        return by_sign(effects, sign, "against ", least)

    return judge


def better_everywhere(
    ours: Pick,
    others: Picks,
    where: Where,
    quantity: Quantity = NORMALISED_SCORE,
    sign: int = 1,
) -> Rule:
    """Ours above or below each of the others on every kind of data by itself, as by_sign() says."""

    def judge(finals: Sequence[Final]) -> Judgement:
        overall = better(ours, others, where, quantity, sign)(finals)
        if overall.verdict == "not run":
            return overall
        kinds = problems(finals, where)
        pairs = {name: (ours, other) for name, other in others.items()}
        apart = {
            f"{name}, {kind.label}": effect
            for kind in kinds
            for name, effect in differences(finals, pairs, kind.__eq__, quantity).items()
        }
        if len(apart) < len(kinds) * len(others):
            return not_run("some of " + listed(others) + " lack runs on some data")
        above = sum(effect.low > 0 for effect in apart.values())
        below = sum(effect.high < 0 for effect in apart.values())
        clear, against = (above, below) if sign > 0 else (below, above)
        words = (
            f"of {len(apart)} comparisons {clear} clearly for it, {against} clearly against it; "
            f"on average {in_words(overall.effects, 'against ')}"
        )
        return careful(side_of(0, apart, sign), words, apart)

    return judge


def ordered(picks: Picks, where: Where, quantity: Quantity) -> Rule:
    """Each larger than the next; the steps as by_sign() says."""

    def judge(finals: Sequence[Final]) -> Judgement:
        pairs = {f"{a} − {b}": (picks[a], picks[b]) for a, b in pairwise(picks)}
        steps = differences(finals, pairs, where, quantity)
        if len(steps) < len(pairs):
            return not_run("not all of " + listed(picks) + " were run")
        return by_sign(steps, 1)

    return judge


def rising(picks: Picks, where: Where, quantity: Quantity, sign: int = 1) -> Rule:
    """A measure rises (sign 1) or falls (−1) along the picks.

    Reproduced: last − first is clear and no step is clearly the other way. Partly: last − first is
    clear, or points the right way with no step clearly against it.
    """

    def judge(finals: Sequence[Final]) -> Judgement:
        first, *_, last = picks
        ends = f"{last} − {first}"
        whole = differences(finals, {ends: (picks[last], picks[first])}, where, quantity)
        if not whole:
            return not_run("the ends were not run on the same data")
        pairs = {f"{b} − {a}": (picks[b], picks[a]) for a, b in pairwise(picks)}
        steps = differences(finals, pairs, where, quantity).values()
        against = sum(e.high < 0 if sign > 0 else e.low > 0 for e in steps)
        clear = whole[ends].low > 0 if sign > 0 else whole[ends].high < 0
        right = whole[ends].value * sign > 0
        words = f"{ends}: {shown(whole[ends])}; {against} of {len(steps)} steps against it"
        return careful(
            graded(clear and not against, clear or (right and not against)), words, whole
        )

    return judge


def between(
    picks: Picks,
    there: Where,
    here: Where,
    quantity: Quantity = NORMALISED_SCORE,
    sign: int = 1,
    least: float = 0.0,
) -> Rule:
    """A measure is larger (sign 1) or smaller (−1) on one kind of data than on another.

    Kinds are paired by environment, datasets by seed; then as by_sign() says.
    """

    def judge(finals: Sequence[Final]) -> Judgement:
        kinds = matched(finals, there, here)
        tasks = {name: gaps(finals, pick, pick, kinds, quantity) for name, pick in picks.items()}
        effects = {name: mean_interval(each) for name, each in tasks.items() if each}
        if len(effects) < len(picks):
            return missing(picks, effects)
        return by_sign(effects, sign, least=least)

    return judge


def similar(ours: Pick, others: Picks, where: Where, margin: float) -> Rule:
    """Scores within a margin of each other, as _near() says."""
    pairs = {name: (ours, other) for name, other in others.items()}
    return _near(pairs, lambda finals: same(finals, where), margin)


def alike(
    picks: Picks, there: Where, here: Where, margin: float, other: Pick | None = None
) -> Rule:
    """A score on one kind of data is that (of another method) on another kind, as _near() says."""
    pairs = {name: (pick, other or pick) for name, pick in picks.items()}
    return _near(pairs, lambda finals: matched(finals, there, here), margin)


def _near(
    pairs: Mapping[str, tuple[Pick, Pick]],
    kinds: Callable[[Sequence[Final]], list[Kinds]],
    margin: float,
) -> Rule:
    """Reproduced: every interval within ±margin, and every environment's mean. Partly: every mean
    over environments, which may lie within because they cancel."""

    def judge(finals: Sequence[Final]) -> Judgement:
        tasks: dict[str, Gaps] = {
            name: gaps(finals, *pair, kinds(finals)) for name, pair in pairs.items()
        }
        effects = {name: mean_interval(each) for name, each in tasks.items() if each}
        if len(effects) < len(pairs):
            return missing(pairs, effects)
        apart = {
            name: {kind: float(own.mean()) for kind, own in each.items()}
            for name, each in tasks.items()
        }
        steady = all(abs(mean) <= margin for each in apart.values() for mean in each.values())
        within = all(-margin <= e.low and e.high <= margin for e in effects.values())
        words = "; ".join(
            f"{name} {shown(effects[name])}, apart: "
            + ", ".join(f"{_short(kind)} {signed(mean)}" for kind, mean in each.items())
            for name, each in apart.items()
        )
        on_average = all(abs(e.value) <= margin for e in effects.values())
        return careful(graded(steady and within, on_average), words, effects)

    return judge


def _short(kinds: str) -> str:
    """Of two kinds of data, the environment they share."""
    return kinds.partition(",")[0] if " − " in kinds else kinds


def steadier(ours: Picks, others: Picks, there: Where, here: Where) -> Rule:
    """The score of ours changes less, up or down, between two kinds of data than the others'."""
    return _changes(ours, others, (there, here), np.abs, -1)


def widens(ours: Picks, others: Picks, there: Where, here: Where) -> Rule:
    """Ours leads the others by more on one kind of data than on another."""
    return _changes(ours, others, (there, here), identity, 1)


def _changes(
    ours: Picks,
    others: Picks,
    kinds: tuple[Where, Where],
    fold: Callable[[Floats], Floats],
    sign: int,
) -> Rule:
    def judge(finals: Sequence[Final]) -> Judgement:
        effects = {}
        for name, pick in ours.items():
            for other, theirs in others.items():
                tasks = excess(finals, pick, theirs, matched(finals, *kinds), fold)
                if not tasks:
                    return not_run(f"no runs of {name} and {other} on both kinds of data")
                effects[f"{name} − {other}"] = mean_interval(tasks)
        return by_sign(effects, sign)

    return judge


def reaches(picks: Picks, where: Where, level: float, sign: int = 1, measure: str = SCORE) -> Rule:
    """Means above (sign 1) or below (−1) a level, as side_of() says."""

    def judge(finals: Sequence[Final]) -> Judgement:
        means = {}
        for name, pick in picks.items():
            by_kind = [values(finals, pick, kind, measure) for kind in problems(finals, where)]
            tasks = {
                str(k): np.array(list(each.values())) for k, each in enumerate(by_kind) if each
            }
            if tasks:
                means[name] = mean_interval(tasks)
        if len(means) < len(picks):
            return missing(picks, means)
        return careful(side_of(level, means, sign), in_words(means), means)

    return judge
