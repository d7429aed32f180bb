"""Which actions the log tried, overall and in each region of the state space.

States are grouped into cells by k-means on standardised observations. Within a cell the share of
each action estimates the behaviour; cells are coarse, so its entropy is an upper bound.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rbve.audit._reading import Encoder, Sample, draw, encoded, fit_encoder, reach, rows_at
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
class _Propensities:
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
    propensities: _Propensities | None


@dataclass(frozen=True)
class Regions:
    """Cells of a log, to ask what it did in states like others."""

    encode: Encoder
    centres: np.ndarray  # (K, D)
    pairs: np.ndarray  # (K, A) rows of each action in each cell

    @staticmethod
    def of(dataset: Dataset, seed: int = 0) -> "Regions":
        """By the same sample and the same cells as an audit with this seed."""
        within = reach(dataset, seed)
        encode = fit_encoder(dataset, within, seed)
        sample = draw(dataset, within, encode, seed)
        centres = _centres(sample.states, dataset.num_actions, seed)
        action = np.asarray(dataset.action[sample.rows], np.int64)
        cell = _assign(sample.states, centres)
        return Regions(encode, centres, _pairs(cell, action, len(centres), dataset.num_actions))

    def supported(self, dataset: Dataset, rows: np.ndarray) -> np.ndarray:
        """(N, A) bool, which actions the log took at least ENOUGH times in states like those of
        these rows, which may be of other episodes."""
        cell = _assign(encoded(dataset, rows, self.encode), self.centres)
        return self.pairs[cell] >= ENOUGH


def measure(dataset: Dataset, sample: Sample, seed: int) -> Support:
    actions, rows = dataset.num_actions, sample.rows
    final = rows_at(len(dataset.action), dataset.offsets[1:] - 1)
    taken = np.asarray(dataset.action)[~final]
    legal_counts, mean_legal, forced = _masks(dataset, final)
    action = np.asarray(dataset.action[rows], np.int64)
    legal = None if dataset.legal is None else np.asarray(dataset.legal[rows])
    options = np.full(len(rows), actions) if legal is None else legal.sum(axis=1)
    cell, pairs = _cells(sample.states, action, actions, seed)
    visits = pairs.sum(axis=1)
    allowed = visits[:, None] + np.zeros_like(pairs)
    if legal is not None:
        allowed = _sums(cell, legal, len(pairs))
    # Cells of a few rows alone cannot tell, and are left out.
    free = (options > 1) & (visits >= _ROWS_PER_PAIR * 2)[cell]
    alone = ((pairs >= ENOUGH).sum(axis=1) <= 1)[cell[free]]
    order = np.argsort(-visits, kind="stable")
    return Support(
        counts=np.bincount(taken[taken >= 0], minlength=actions).tolist(),
        legal_counts=legal_counts,
        sampled=len(rows),
        whole=sample.whole,
        cells=pairs[order].tolist(),
        legal_cells=None if legal is None else allowed[order].astype(int).tolist(),
        coverage=float((allowed * (pairs >= ENOUGH)).sum() / max(allowed.sum(), 1)),
        one_sided=float(alone.mean()) if free.any() else 0.0,
        entropy=_entropy(pairs, options),
        mean_legal=mean_legal,
        forced=forced,
        propensities=_propensities(dataset, rows, action, legal, options),
    )


def _cells(
    states: np.ndarray, action: np.ndarray, actions: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """(N,) cell of every state, and (cells, A) rows of each action in each."""
    centres = _centres(states, actions, seed)
    cell = _assign(states, centres)
    pairs = _pairs(cell, action, len(centres), actions)
    kept = pairs.any(axis=1)  # cells that no row of the sample is in are none
    return (np.cumsum(kept) - 1)[cell], pairs[kept]


def _pairs(cell: np.ndarray, action: np.ndarray, cells: int, actions: int) -> np.ndarray:
    """(cells, A) rows."""
    return np.bincount(cell * actions + action, minlength=cells * actions).reshape(cells, actions)


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
    count = int(np.clip(len(states) // (_ROWS_PER_PAIR * actions), 1, _CELLS))
    # Each first centre is drawn by its squared distance to those before (k-means++).
    chosen, distance = [int(rng.integers(len(states)))], np.full(len(states), np.inf)
    while len(chosen) < count:
        distance = np.minimum(distance, ((states - states[chosen[-1]]) ** 2).sum(axis=1))
        if not distance.any():
            break  # no more different states
        chosen.append(int(rng.choice(len(states), p=distance / distance.sum())))
    centres = states[chosen]
    for _ in range(_ROUNDS):
        cell = _assign(states, centres)
        size = np.bincount(cell, minlength=len(centres))[:, None]
        total = _sums(cell, states, len(centres))
        centres = np.where(size > 0, total / np.maximum(size, 1), centres)
    return centres


def _assign(states: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Index of the nearest centre."""
    squares = (centres**2).sum(axis=1)
    starts = range(0, max(len(states), 1), _FIT_ROWS)
    parts = (states[start : start + _FIT_ROWS] for start in starts)
    return np.concatenate([np.argmin(squares - 2 * part @ centres.T, axis=1) for part in parts])


def _sums(cell: np.ndarray, values: np.ndarray, cells: int) -> np.ndarray:
    """Sums of `values` (N, M) over the rows of each cell: (cells, M)."""
    columns = [np.bincount(cell, weights=column, minlength=cells) for column in values.T]
    return np.stack(columns, axis=1)


def _entropy(pairs: np.ndarray, options: np.ndarray) -> float:
    visits = pairs.sum(axis=1)
    share = pairs / np.maximum(visits, 1)[:, None]
    surprise = -np.sum(share * np.log(np.where(share > 0, share, 1)), axis=1)
    most = float(np.log(np.maximum(options, 1)).sum())
    if most == 0:
        return 1.0  # one legal action everywhere: no choice that could lack variety
    return float(min(1.0, (surprise * visits).sum() / most))


def _propensities(
    dataset: Dataset,
    rows: np.ndarray,
    action: np.ndarray,
    legal: np.ndarray | None,
    options: np.ndarray,
) -> _Propensities | None:
    if dataset.propensity is None:
        return None
    p = np.asarray(dataset.propensity[rows], np.float64)
    known = np.isfinite(p) & (p > 0) & (p <= 1)
    if not known.any():
        return None
    p, action, actions = p[known], action[known], dataset.num_actions
    count = np.full(actions, len(p)) if legal is None else legal[known].sum(axis=0)
    count = np.maximum(count, 1)
    totals = np.bincount(action, 1 / p, actions) / count
    squares = np.bincount(action, 1 / p**2, actions) / count
    errors = np.sqrt(np.maximum(squares - totals**2, 0) / count)
    most = float(np.log(np.maximum(options[known], 1)).mean())
    surprise = float(-np.log(p).mean() / most) if most else 1.0
    return _Propensities(float(p.mean()), surprise, totals.tolist(), errors.tolist())


def findings(dataset: Dataset, support: Support) -> Iterator[Finding]:
    yield from _rare_actions(dataset, support)
    uniform = f"{support.entropy:.1%} of the entropy of uniform choice"
    if support.entropy < _DETERMINISTIC:
        yield Finding(
            "near-deterministic behaviour",
            f"within regions of like states the log takes one action almost always ({uniform})",
            "values of actions that were never tried cannot be learned, only cloned",
            "add data of a behaviour that explores, or use `rbve train --algorithm bc`",
        )
    elif support.one_sided > _ONE_SIDED:
        yield Finding(
            "uncovered regions",
            f"{support.one_sided:.0%} of decisions lie in regions where one action alone has "
            f"{ENOUGH} rows or more ({len(support.cells)} regions; {support.coverage:.0%} of "
            "state-action space is covered)",
            "there nothing says what another action would bring, and a greedy policy guesses",
            "keep the ranking term strong (`--set lam=0.5`), or add data there",
        )
    if support.propensities is not None:
        yield from _wrong_propensities(dataset, support, support.propensities)


def _rare_actions(dataset: Dataset, support: Support) -> Iterator[Finding]:
    numbered = dataset.actions == tuple(map(str, range(dataset.num_actions)))
    unused = [a for a, count in enumerate(support.counts) if count == 0]
    if numbered and unused:
        yield Finding(
            "holes in the action ids",
            f"ids {', '.join(map(str, unused))} of 0 to {dataset.num_actions - 1} never occur",
            "the network holds a value for actions that may not exist, and may choose them",
            "name the actions that exist with `--actions` when converting, or give `--legal` masks",
        )
        unused = []
    rare = [a for a, count in enumerate(support.counts) if 0 < count < _RARE_ROWS] + unused
    if rare:
        shown = [f"{dataset.actions[a]} {support.counts[a]:,}" for a in sorted(rare)]
        remedy = (
            "add data, or merge them with like actions in the log; else train with "
            "`--set lam=0.5` or `--algorithm bcq`, which hardly choose what the log hardly took"
        )
        if len(unused) == len(rare):
            remedy = "name the actions that exist with `--actions` when converting, or add data"
        yield Finding(
            "actions without support",
            f"{len(rare)} of {dataset.num_actions} actions have fewer than {_RARE_ROWS} of "
            f"{sum(support.counts):,} decisions: {listed(shown)}",
            "so few rows cannot say what an action is worth",
            remedy,
        )


def _wrong_propensities(
    dataset: Dataset, support: Support, claimed: _Propensities
) -> Iterator[Finding]:
    pairs = zip(claimed.totals, claimed.errors, strict=True)
    high = [total > 1 + max(_PROPENSITY_ERROR, _ERRORS * error) for total, error in pairs]
    seen = ""
    if any(high):
        worst = int(np.argmax(np.where(high, claimed.totals, -np.inf)))
        seen = (
            f"action {dataset.actions[worst]} is taken {claimed.totals[worst]:.2f} times as often "
            "as its propensities say"
        )
    elif claimed.mean > _CERTAIN and support.entropy > _MIXED:
        seen = (
            f"propensities are {claimed.mean:.3f} on average, yet like states saw different "
            f"actions ({support.entropy:.0%} of the entropy of uniform choice)"
        )
    if seen:
        yield Finding(
            "propensities disagree with the actions",
            seen,
            "off-policy estimates divide by them",
            "check that they are the probability of the action taken, in the row it was taken",
        )
