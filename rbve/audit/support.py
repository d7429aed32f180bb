"""Which actions the log tried, overall and in each region of the state space.

States are grouped into cells by k-means on standardised observations. Within a cell the share of
each action estimates the behaviour; cells are coarse, so its entropy is an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rbve.audit.reading import Sample
from rbve.audit.verdict import Finding, listed
from rbve.data.dataset import Dataset

_CELLS = 64  # at most: a heat map a person can read
_ROWS_PER_PAIR = 20  # expected in a cell under uniform behaviour; fewer rows get fewer cells
ENOUGH = 5  # rows of an action in a cell; fewer say nothing about its value there
_FIT_ROWS = 20_000  # from which cells are found
_ROUNDS = 12  # of k-means

# Fewer rows than this cannot say what an action is worth over a whole state space.
_RARE_ROWS = 20
# Behaviour below this share of the entropy of uniform choice takes one action almost always.
_DETERMINISTIC = 0.05
# Over a quarter of what was visited without a second action to compare: there R-BVE can only clone.
_ONE_SIDED = 0.25
# Propensities are wrong by more than this and by more than four standard errors: not noise.
_PROPENSITY_ERROR = 0.1
_ERRORS = 4.0
_CERTAIN = 0.99  # mean propensity that claims deterministic behaviour
_MIXED = 0.5  # share of uniform entropy at which like states clearly saw different actions


@dataclass(frozen=True)
class Propensities:
    mean: float
    entropy: float  # −mean log p, as a share of the log of legal actions
    totals: list[float]  # per action: mean of 1[taken]/p over rows where legal; 1 if right
    errors: list[float]  # their standard errors


@dataclass(frozen=True)
class Support:
    counts: list[int]  # per action, all rows
    legal_counts: list[int] | None  # rows in which each action is legal
    sampled: int  # rows behind what follows
    whole: bool  # those are all rows
    cells: list[list[int]]  # (cell, action) rows, most visited cell first
    legal_cells: list[list[int]] | None  # (cell, action) rows in which the action is legal
    coverage: float  # share of legal (state, action) with at least ENOUGH rows in their cell
    one_sided: float  # share of decisions with a choice in cells where one action alone has them
    entropy: float  # of the action within a cell, as a share of the log of legal actions
    mean_legal: float
    forced: float  # share of decisions with one legal action
    propensities: Propensities | None


class _Choices(NamedTuple):
    """Decisions of the sample."""

    action: np.ndarray  # (N,)
    cell: np.ndarray  # (N,)
    legal: np.ndarray | None  # (N, A)
    options: np.ndarray  # (N,) how many actions were legal
    pairs: np.ndarray  # (cells, A) rows of each action in each cell


def measure(dataset: Dataset, sample: Sample, seed: int) -> Support:
    actions = dataset.num_actions
    final = np.zeros(len(dataset.action), bool)
    final[dataset.offsets[1:] - 1] = True
    taken = np.asarray(dataset.action)[~final]
    legal_counts, mean_legal, forced = _masks(dataset, final)
    choices = _choose(dataset, sample, seed)
    pairs = choices.pairs
    allowed = pairs.sum(axis=1, keepdims=True) + np.zeros_like(pairs)
    if choices.legal is not None:
        allowed = _sums(choices.cell, choices.legal, len(pairs))
    order = np.argsort(-pairs.sum(axis=1), kind="stable")
    return Support(
        counts=np.bincount(taken[taken >= 0], minlength=actions).tolist(),
        legal_counts=legal_counts,
        sampled=len(choices.action),
        whole=sample.whole,
        cells=pairs[order].tolist(),
        legal_cells=None if choices.legal is None else allowed[order].astype(int).tolist(),
        coverage=float((allowed * (pairs >= ENOUGH)).sum() / max(allowed.sum(), 1)),
        one_sided=one_sided(choices),
        entropy=entropy(choices),
        mean_legal=mean_legal,
        forced=forced,
        propensities=propensities(dataset, sample.rows, choices),
    )


def _choose(dataset: Dataset, sample: Sample, seed: int) -> _Choices:
    actions = dataset.num_actions
    action = np.asarray(dataset.action[sample.rows], np.int64)
    legal = None if dataset.legal is None else np.asarray(dataset.legal[sample.rows])
    found = _centres(sample.states, actions, seed)
    cell = _assign(sample.states, found)
    pairs = np.bincount(cell * actions + action, minlength=len(found) * actions)
    pairs = pairs.reshape(len(found), actions)
    options = np.full(len(action), actions) if legal is None else legal.sum(axis=1)
    kept = pairs.any(axis=1)  # cells that no row of the sample is in are none
    return _Choices(action, (np.cumsum(kept) - 1)[cell], legal, options, pairs[kept])


def _masks(dataset: Dataset, final: np.ndarray) -> tuple[list[int] | None, float, float]:
    """(rows in which each action is legal, mean number of legal actions, share with only one)."""
    if dataset.legal is None:
        return None, float(dataset.num_actions), float(dataset.num_actions == 1)
    total = np.zeros(dataset.num_actions, np.int64)
    forced, size = 0, 1 << 20
    for start in range(0, len(final), size):
        legal = np.asarray(dataset.legal[start : start + size])[~final[start : start + size]]
        total += legal.sum(axis=0)
        forced += int((legal.sum(axis=1) == 1).sum())
    rows = max(int((~final).sum()), 1)
    return total.tolist(), float(total.sum() / rows), forced / rows


def _centres(states: np.ndarray, actions: int, seed: int) -> np.ndarray:
    """(K, D) by k-means."""
    rng = np.random.default_rng([seed, 3])
    if len(states) > _FIT_ROWS:
        states = states[np.sort(rng.choice(len(states), _FIT_ROWS, replace=False))]
    wanted = int(np.clip(len(states) // (_ROWS_PER_PAIR * actions), 1, _CELLS))
    found = _apart(states, wanted, rng)
    for _ in range(_ROUNDS):
        cell = _assign(states, found)
        size = np.bincount(cell, minlength=len(found))
        total = _sums(cell, states, len(found))
        found = np.where(size[:, None] > 0, total / np.maximum(size, 1)[:, None], found)
    return found


def _apart(states: np.ndarray, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """States to start from, each drawn by its squared distance to those before (k-means++)."""
    chosen = [int(rng.integers(len(states)))]
    distance = np.full(len(states), np.inf)
    while len(chosen) < wanted:
        distance = np.minimum(distance, ((states - states[chosen[-1]]) ** 2).sum(axis=1))
        if not distance.any():
            break  # no more different states
        chosen.append(int(rng.choice(len(states), p=distance / distance.sum())))
    return states[chosen]


def _assign(states: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Index of the nearest centre."""
    squares = (found**2).sum(axis=1)
    return np.concatenate(
        [
            np.argmin(squares - 2 * states[start : start + _FIT_ROWS] @ found.T, axis=1)
            for start in range(0, max(len(states), 1), _FIT_ROWS)
        ]
    )


def _sums(cell: np.ndarray, values: np.ndarray, cells: int) -> np.ndarray:
    """Sums of `values` (N, M) over the rows of each cell: (cells, M)."""
    columns = [np.bincount(cell, weights=column, minlength=cells) for column in values.T]
    return np.stack(columns, axis=1)


def one_sided(choices: _Choices) -> float:
    """Cells of a few rows alone cannot tell, and are left out."""
    alone = (choices.pairs >= ENOUGH).sum(axis=1) <= 1
    telling = choices.pairs.sum(axis=1) >= _ROWS_PER_PAIR * 2
    free = (choices.options > 1) & telling[choices.cell]
    return float(alone[choices.cell[free]].mean()) if free.any() else 0.0


def entropy(choices: _Choices) -> float:
    visits = choices.pairs.sum(axis=1)
    share = choices.pairs / np.maximum(visits, 1)[:, None]
    surprise = -np.sum(share * np.log(np.where(share > 0, share, 1)), axis=1)
    most = float(np.log(np.maximum(choices.options, 1)).sum())
    if most == 0:
        return 1.0  # one legal action everywhere: no choice that could lack variety
    return float(min(1.0, (surprise * visits).sum() / most))


def propensities(dataset: Dataset, rows: np.ndarray, choices: _Choices) -> Propensities | None:
    if dataset.propensity is None:
        return None
    p = np.asarray(dataset.propensity[rows], np.float64)
    known = np.isfinite(p) & (p > 0) & (p <= 1)
    if not known.any():
        return None
    p, action = p[known], choices.action[known]
    actions = dataset.num_actions
    count = np.full(actions, len(p)) if choices.legal is None else choices.legal[known].sum(axis=0)
    count = np.maximum(count, 1)
    totals = np.bincount(action, 1 / p, actions) / count
    squares = np.bincount(action, 1 / p**2, actions) / count
    errors = np.sqrt(np.maximum(squares - totals**2, 0) / count)
    most = float(np.log(np.maximum(choices.options[known], 1)).mean())
    surprise = float(-np.log(p).mean() / most) if most else 1.0
    return Propensities(float(p.mean()), surprise, totals.tolist(), errors.tolist())


def findings(dataset: Dataset, found: Support) -> Iterator[Finding]:
    yield from _rare_actions(dataset, found)
    uniform = f"{found.entropy:.1%} of the entropy of uniform choice"
    if found.entropy < _DETERMINISTIC:
        yield Finding(
            "near-deterministic behaviour",
            f"within regions of like states the log takes one action almost always ({uniform})",
            "values of actions that were never tried cannot be learned, only cloned",
            "add data of a behaviour that explores, or use `rbve train --algorithm bc`",
        )
    elif found.one_sided > _ONE_SIDED:
        yield Finding(
            "uncovered regions",
            f"{found.one_sided:.0%} of decisions lie in regions where one action alone has "
            f"{ENOUGH} rows or more ({len(found.cells)} regions; {found.coverage:.0%} of "
            "state-action space is covered)",
            "there nothing says what another action would bring, and a greedy policy guesses",
            "keep the ranking term strong (`--set lam=0.5`), or add data there",
        )
    if found.propensities is not None:
        yield from _wrong_propensities(dataset, found, found.propensities)


def _rare_actions(dataset: Dataset, found: Support) -> Iterator[Finding]:
    numbered = dataset.actions == tuple(map(str, range(dataset.num_actions)))
    unused = [a for a, count in enumerate(found.counts) if count == 0]
    if numbered and unused:
        yield Finding(
            "holes in the action ids",
            f"ids {', '.join(map(str, unused))} of 0 to {dataset.num_actions - 1} never occur",
            "the network holds a value for actions that may not exist, and may choose them",
            "name the actions that exist with `--actions` when converting, or give `--legal` masks",
        )
        unused = []
    rare = [a for a, count in enumerate(found.counts) if 0 < count < _RARE_ROWS] + unused
    if rare:
        shown = [f"{dataset.actions[a]} {found.counts[a]:,}" for a in sorted(rare)]
        remedy = (
            "add data, or merge them with like actions in the log; else train with "
            "`--set lam=0.5` or `--algorithm bcq`, which hardly choose what the log hardly took"
        )
        if len(unused) == len(rare):
            remedy = "name the actions that exist with `--actions` when converting, or add data"
        yield Finding(
            "actions without support",
            f"{len(rare)} of {dataset.num_actions} actions have fewer than {_RARE_ROWS} of "
            f"{sum(found.counts):,} decisions: {listed(shown)}",
            "so few rows cannot say what an action is worth",
            remedy,
        )


def _wrong_propensities(
    dataset: Dataset, found: Support, claimed: Propensities
) -> Iterator[Finding]:
    pairs = zip(claimed.totals, claimed.errors, strict=True)
    high = [
        action
        for action, (total, error) in enumerate(pairs)
        if total > 1 + max(_PROPENSITY_ERROR, _ERRORS * error)
    ]
    seen = ""
    if high:
        worst = max(high, key=lambda action: claimed.totals[action])
        seen = (
            f"action {dataset.actions[worst]} is taken {claimed.totals[worst]:.2f} times as often "
            "as its propensities say"
        )
    elif claimed.mean > _CERTAIN and found.entropy > _MIXED:
        seen = (
            f"propensities are {claimed.mean:.3f} on average, yet like states saw different "
            f"actions ({found.entropy:.0%} of the entropy of uniform choice)"
        )
    if seen:
        yield Finding(
            "propensities disagree with the actions",
            seen,
            "off-policy estimates divide by them",
            "check that they are the probability of the action taken, in the row it was taken",
        )
