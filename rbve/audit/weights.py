"""V̂ at the discount, and what the ranking weight w(s) = min(exp((V̂ − E)/β), cap) makes of it.

`dataset` divides V̂ by its deviation over the rows trained on, the default; `none` is the paper's
raw formula. E is the mean over the data. The β recommended is the one asked for if it leaves the
weights useful, else the smallest of the grid from .5 on that does: at least EFFECTIVE of the data
counts, and at most CLIPPED of it stands at the cap. `dataset` is always recommended: what β does
then hangs on the shape of V̂ alone, not on the scale of the rewards.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rbve.audit._reading import without_observations
from rbve.audit.measure import Histogram, Spread, histogram, spread
from rbve.audit.verdict import Finding, counted
from rbve.data.dataset import Dataset
from rbve.data.transitions import View, transitions

CAP = 20.0  # rbve.ranking.Config.cap
_PAPER_BETA = 0.5
GRID = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
EFFECTIVE = 0.3  # a third of each batch still speaks; Gaussian V̂ at β = 1 has .37
CLIPPED = 0.02  # at the cap rows are no longer told apart
# Half of all ranking then rests on one row in twenty: λ has to be as large as for the whole batch.
_HALF_OF_WEIGHT = 0.05
# V̂ that varies by less is one number in float32, which holds seven digits.
_SAME = 1e-6
# Adam at 3e-4 moves an output by a few thousand in ten million updates.
_LARGE_VALUE = 1e4
# Of the reward an episode holds, what its first state sees through the discount.
_SEEN_FROM_START = 0.01
_BLOCK_ROWS = 1 << 20  # rows turned into transitions at once


@dataclass(frozen=True)
class Effect:
    beta: float
    normalise: str  # dataset or none
    clipped: float  # share of rows at the cap
    effective: float  # (Σw)² / (n Σw²)
    half: float  # share of rows, heaviest first, that hold half of all weight
    useful: bool  # by the rule


@dataclass(frozen=True)
class Weights:
    gamma: float
    beta: float  # asked for
    rows: int  # R-BVE trains on
    unknown: int  # of these, rows without V̂, which weigh 1; figures below are of the others
    dropped: int  # decisions it cannot use: no logged pair follows
    value: Spread | None  # None: V̂ is known nowhere
    histogram: Histogram | None
    effects: list[Effect]
    recommended: Effect | None  # None: V̂ does not vary
    flags: str  # for `rbve train`
    half_episodes: int  # episodes that hold half of all weight, at the β asked for
    horizon: float  # 1/(1 − γ)
    seen_from_start: float  # Σ γ^t |r_t| / Σ |r_t|
    beyond: float  # share of Σ γ^t |r_t| that lies beyond the horizon


def measure(dataset: Dataset, gamma: float, beta: float) -> Weights:
    g, episode, pairs, decisions = values(dataset, gamma)
    known = ~np.isnan(g)
    unknown = int((~known).sum()) if pairs else 0
    g, episode = g[known], episode[known]
    varies = len(g) > 0 and bool(g.std() > _SAME * max(np.abs(g).max(), 1e-30))
    effects, chosen, flags = [], None, ""
    if varies:
        betas = sorted({*GRID, beta})
        effects = [_effect(g, b, how) for how in ("dataset", "none") for b in betas]
        chosen = recommend(effects, beta)
        flags = f"--set beta={chosen.beta:g} --set normalise={chosen.normalise}"
    weight = weights(g, beta, "dataset") if varies else np.ones(len(g))
    horizon, seen, beyond = _horizon_of(dataset, gamma)
    return Weights(
        gamma=gamma,
        beta=beta,
        rows=pairs,
        unknown=unknown,
        dropped=decisions - pairs,
        value=spread(g) if len(g) else None,
        histogram=histogram(g) if len(g) else None,
        effects=effects,
        recommended=chosen,
        flags=flags,
        half_episodes=_holding_half(np.bincount(episode, weights=weight)) if len(g) else 0,
        horizon=horizon,
        seen_from_start=seen,
        beyond=beyond,
    )


def values(dataset: Dataset, gamma: float) -> tuple[np.ndarray, np.ndarray, int, int]:
    """(V̂ of the rows R-BVE trains on, their episodes, how many, decisions in all).

    Where it can train on none, V̂ of all decisions.
    """
    light = replace(without_observations(dataset), legal=None, propensity=None, executed=None)
    blocks: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {"pair": [], "none": []}
    start = 0
    while start < light.num_episodes:
        limit = light.offsets[start] + _BLOCK_ROWS
        stop = max(int(light.offsets.searchsorted(limit, side="right")) - 1, start + 1)
        part = light.part(start, stop)
        for bootstrap, held in blocks.items():
            kept = transitions(part, View(gamma), bootstrap)  # type: ignore[arg-type]
            episode = start + part.offsets.searchsorted(kept.row, side="right") - 1
            held.append((kept.g, episode.astype(np.int32)))
        start = stop
    pairs, decisions = (sum(len(g) for g, _ in held) for held in blocks.values())
    g, episode = zip(*blocks["pair" if pairs else "none"], strict=True)
    return np.concatenate(g).astype(np.float64), np.concatenate(episode), pairs, decisions


def weights(g: np.ndarray, beta: float, normalise: str) -> np.ndarray:
    scale = float(g.std()) if normalise == "dataset" else 1.0
    exponent = np.minimum((g - g.mean()) / scale / beta, np.log(CAP))
    return np.where(exponent == np.log(CAP), CAP, np.minimum(np.exp(exponent), CAP))


def _effect(g: np.ndarray, beta: float, normalise: str) -> Effect:
    weight = weights(g, beta, normalise)
    clipped = float((weight == CAP).mean())
    effective = float(weight.sum() ** 2 / (len(weight) * (weight**2).sum()))
    useful = effective >= EFFECTIVE and clipped <= CLIPPED
    half = _holding_half(weight) / len(weight)
    return Effect(float(beta), normalise, clipped, effective, half, useful)


def recommend(effects: list[Effect], asked: float) -> Effect:
    known = {each.beta: each for each in effects if each.normalise == "dataset"}
    order = [asked, *(beta for beta in GRID if beta >= _PAPER_BETA)]
    useful = [known[beta] for beta in order if known[beta].useful]
    return useful[0] if useful else max(known.values(), key=lambda each: each.effective)


def _holding_half(weight: np.ndarray) -> int:
    """How many of the largest entries add up to half of the sum."""
    heavy = np.cumsum(np.sort(weight)[::-1])
    return int(np.searchsorted(heavy, heavy[-1] / 2)) + 1


def _horizon_of(dataset: Dataset, gamma: float) -> tuple[float, float, float]:
    """(effective horizon, reward mass the first state sees, share of it beyond the horizon)."""
    horizon = np.inf if gamma == 1 else 1 / (1 - gamma)
    starts = np.repeat(dataset.offsets[:-1], np.diff(dataset.offsets))
    step = np.arange(len(dataset.reward)) - starts
    size = np.abs(np.asarray(dataset.reward, np.float64))
    discounted = size * np.float64(gamma) ** step
    total = discounted.sum()
    seen = float(total / size.sum()) if size.any() else 1.0
    beyond = float(discounted[step >= horizon].sum() / total) if total else 0.0
    return float(horizon), seen, beyond


def findings(result: Weights) -> Iterator[Finding]:
    decisions = result.rows + result.dropped
    if result.dropped > decisions / 2:
        yield Finding(
            "few rows can train",
            f"{result.dropped:,} of {decisions:,} decisions are the last of a truncated episode",
            "no logged action follows them, so BVE and R-BVE have no target there",
            "if these ends are real, read the log with `--ends terminated`; of lone transitions "
            "name the next decision with `--next-action`, or train with `--algorithm cql`, which "
            "needs none",
            level="look" if result.rows else "stop",
        )
    if result.value is None:
        return  # the audit of returns has said so
    if result.recommended is None:
        rows = (result.rows or decisions) - result.unknown
        yield Finding(
            "nothing to rank",
            f"V̂ is {result.value.mean:g} in all {rows:,} rows at γ = {result.gamma:g}",
            "no state and no action is better than another, so nothing can be learned",
            "check the reward column; give the log a reward that tells outcomes apart",
            level="stop",
        )
        return
    asked = next(e for e in result.effects if (e.beta, e.normalise) == (result.beta, "dataset"))
    if asked.half < _HALF_OF_WEIGHT:
        yield Finding(
            "weights dominated by few rows",
            f"at β = {result.beta:g} half of all ranking weight lies on {asked.half:.1%} of rows, "
            f"in {counted(result.half_episodes, 'episode')} (effective share "
            f"{asked.effective:.0%}, {asked.clipped:.1%} at the cap)",
            "the ranking term then imitates those few and is silent about the rest",
            f"train with `{result.flags}`",
        )
    largest = max(abs(result.value.low), abs(result.value.high))
    if largest > _LARGE_VALUE:
        yield Finding(
            "values out of scale",
            f"V̂ reaches {largest:.3g}",
            "at usual learning rates the network does not reach such values in any training",
            "divide the rewards by a constant, or train with `--clip-rewards` if signs are enough",
        )
    if result.seen_from_start < _SEEN_FROM_START:
        yield Finding(
            "horizon too short",
            f"at γ = {result.gamma:g} a first state sees {result.seen_from_start:.2%} of the "
            f"reward of its episode (horizon {result.horizon:.0f} steps)",
            "early decisions cannot be learned from what they cannot see",
            "pass a larger `--gamma`, so that 1/(1 − γ) reaches the reward",
        )
