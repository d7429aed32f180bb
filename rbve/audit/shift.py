"""Rewards that stand one row late or early.

A reward belongs to (s_t, a_t, s_t+1). If a regression from the triple one row before explains the
logged rewards much better, on episodes it has not seen, they stand one row late (as where the
reward is logged with the observation it arrives with); from the triple after, one row early.
Three patterns need no regression: see `_patterns`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rbve.audit._reading import SAMPLE_BYTES, Encoder, Reach, encoded, row_bytes, rows_at
from rbve.audit.verdict import Finding
from rbve.data.dataset import Dataset

_ROWS = 8_000  # decisions for the regressions
_FOLDS = 5  # by episode
_FEWEST_EPISODES = 20  # below, held-out scores are chance
_FEWEST_REWARDS = 10  # rows that differ from the usual reward
_WAVES = 128  # random features beside the linear ones
_ACTIONS = 64  # kinds told apart; more share
_PRODUCTS = 256  # action × state features, at most
_RIDGES = (1e-3, 1e-1)  # per row; each side gets its best
_GAIN = 0.1  # share of the rewards' variance the moved triple must explain beyond the own one
_ERRORS = 3.0  # and so many standard errors over the folds
_ONLY_THERE = 0.01  # share elsewhere that a pattern of the first row may have

_LATE, _EARLY = "late", "early"
_SUSPECTED, _RULED_OUT = "suspected", "ruled out"


@dataclass(frozen=True)
class _Fit:
    """Held-out R² of the logged rewards; 0 where a fit does worse than the mean."""

    own: float
    moved: float
    error: float  # standard error of the difference over folds


@dataclass(frozen=True)
class Shift:
    late: _Fit | None
    early: _Fit | None
    pattern: str  # late, early or empty
    pattern_seen: str
    verdicts: dict[str, str]  # late and early: suspected, ruled out, or why it cannot be told


def measure(dataset: Dataset, within: Reach, encode: Encoder, seed: int) -> Shift:
    pattern, seen = _patterns(dataset)
    episodes = _long_episodes(dataset, within, seed)
    fits: dict[str, _Fit | None] = {_LATE: None, _EARLY: None}
    if len(episodes) >= _FEWEST_EPISODES:
        fits = {side: fit(dataset, episodes, encode, side, seed) for side in fits}
    verdicts = {
        side: _SUSPECTED if side == pattern else _verdict(fitted, len(episodes))
        for side, fitted in fits.items()
    }
    return Shift(fits[_LATE], fits[_EARLY], pattern, seen, verdicts)


def _verdict(fitted: _Fit | None, episodes: int) -> str:
    if fitted is None and episodes < _FEWEST_EPISODES:
        return "cannot be told: too few episodes of two steps or more"
    if fitted is None:
        return "cannot be told: these rewards hardly vary inside episodes"
    gain = fitted.moved - fitted.own
    if gain > _GAIN and gain > _ERRORS * fitted.error:
        return _SUSPECTED
    if -gain > _GAIN:
        return _RULED_OUT
    both = f"{fitted.own:.0%} and {fitted.moved:.0%}"
    return f"cannot be told: own and moved step explain about the same ({both})"


def _long_episodes(dataset: Dataset, within: Reach, seed: int) -> np.ndarray:
    """Random episodes of two decisions or more, about ROWS rows of them.

    Those with a reward that differs from the usual one and those without take turns.
    """
    usable = within.episodes[dataset.lengths[within.episodes] >= 2]
    order = np.random.default_rng([seed, 4]).permutation(usable)
    reward = np.asarray(dataset.reward)
    unusual = np.add.reduceat(reward != np.median(reward), dataset.offsets[:-1]) > 0
    turn = np.zeros(len(order), np.int64)
    for group in (unusual[order], ~unusual[order]):
        turn[group] = np.arange(group.sum())
    order = order[np.argsort(turn, kind="stable")]
    limit = min(_ROWS, SAMPLE_BYTES // row_bytes(dataset))
    count = int(np.searchsorted(np.cumsum(dataset.lengths[order]), limit)) + 1
    return np.sort(order[: max(count, _FEWEST_EPISODES)])


def fit(
    dataset: Dataset, episodes: np.ndarray, encode: Encoder, side: str, seed: int
) -> _Fit | None:
    """Own triple against the one before (late) or after (early), over the same rows."""
    starts, stops = dataset.offsets[episodes], dataset.offsets[episodes + 1] - 1
    last = stops if side == _LATE else stops - 1
    # Of a long episode its last rows, where sparse rewards stand.
    lengths = np.minimum(stops - starts - 1, _ROWS // len(episodes) + 1)
    begin = np.cumsum(lengths) - lengths
    rows = np.repeat(last - lengths - begin, lengths) + np.arange(lengths.sum())
    fold = np.repeat(np.arange(len(episodes)) % _FOLDS, lengths)
    reward = np.asarray(dataset.reward[rows], np.float64)
    _, counts = np.unique(reward, return_counts=True)
    if len(counts) < 2 or len(reward) - counts.max() < _FEWEST_REWARDS:
        return None
    reward = (reward - reward.mean()) / reward.std()
    moved = rows - 1 if side == _LATE else rows + 1
    own, other = (
        _scores(_triples(dataset, each, encode, seed), reward, fold) for each in (rows, moved)
    )
    error = float((other - own).std(ddof=1) / np.sqrt(_FOLDS))
    return _Fit(float(own.mean()), float(other.mean()), error)


def _triples(dataset: Dataset, rows: np.ndarray, encode: Encoder, seed: int) -> np.ndarray:
    """Features of (s, a, s'): linear, action × state, and random waves."""
    now, after = (encoded(dataset, each, encode) for each in (rows, rows + 1))
    chosen = np.asarray(dataset.action[rows])
    kinds = min(dataset.num_actions, _ACTIONS)
    action = np.eye(kinds)[np.maximum(chosen, 0) % kinds] * (chosen >= 0)[:, None]
    parts = [np.ones((len(rows), 1)), now, after, action]
    if now.shape[1] * kinds <= _PRODUCTS:
        parts.append((action[:, :, None] * now[:, None, :]).reshape(len(rows), -1))
    rng = np.random.default_rng([seed, 5])
    together = np.concatenate([now, after, 2 * action], axis=1)
    slope = rng.normal(size=(together.shape[1], _WAVES)) / np.sqrt(together.shape[1])
    parts.append(np.cos(2 * together @ slope + rng.uniform(0, 2 * np.pi, _WAVES)))
    return np.concatenate(parts, axis=1)


def _scores(features: np.ndarray, reward: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Held-out R² per fold of the ridge that does best on average, at least 0."""
    square = [features[fold == k].T @ features[fold == k] for k in range(_FOLDS)]
    cross = [features[fold == k].T @ reward[fold == k] for k in range(_FOLDS)]
    best = np.zeros(_FOLDS)
    for ridge in _RIDGES:
        scores = np.zeros(_FOLDS)
        for k in range(_FOLDS):
            rows = int((fold != k).sum())
            left = sum(square) - square[k] + ridge * rows * np.eye(features.shape[1])
            solution = np.linalg.solve(left, sum(cross) - cross[k])
            held = reward[fold == k]
            missed = np.mean((held - features[fold == k] @ solution) ** 2)
            # Against the variance over all rows: a fold may hold no reward at all.
            scores[k] = max(0.0, 1 - missed / np.mean(reward**2))
        best = max(best, scores, key=np.mean)
    return best


def _patterns(dataset: Dataset) -> tuple[str, str]:
    """(late, early or empty; what was seen).

    A 0 in every first row and nowhere else; rewards in first rows alone; a lone reward that always
    stands in the last decision but one.
    """
    if dataset.num_episodes < _FEWEST_EPISODES or dataset.lengths.max() < 3:
        return "", ""
    reward = np.asarray(dataset.reward)
    inner = ~rows_at(len(reward), dataset.offsets[:-1], dataset.offsets[1:] - 1)
    if not reward[dataset.offsets[:-1]].any() and (reward[inner] == 0).mean() < _ONLY_THERE:
        return _LATE, (
            f"the first reward of all {dataset.num_episodes:,} episodes is 0, and hardly any "
            "other is"
        )
    if dataset.lengths.min() < 3:
        return "", ""
    rewards, before = np.count_nonzero(reward), dataset.offsets[1:] - 3
    if rewards and np.count_nonzero(reward[dataset.offsets[:-1]]) == rewards:
        seen = "rewards stand in first rows alone, as if each had slipped past an episode's end"
        return _LATE, seen
    lone = np.add.reduceat(reward != 0, dataset.offsets[:-1]).max() <= 1
    there = np.count_nonzero(reward[before])
    if lone and there == rewards and there > len(before) / 2:
        return _EARLY, (
            "the only reward of an episode always stands in its last decision but one, never in "
            "the last"
        )
    return "", ""


def findings(shift: Shift) -> Iterator[Finding]:
    for side, fitted in ((_LATE, shift.late), (_EARLY, shift.early)):
        if shift.verdicts[side] != _SUSPECTED:
            continue
        seen = shift.pattern_seen
        if fitted is not None and _verdict(fitted, _FEWEST_EPISODES) == _SUSPECTED:
            neighbour = "before" if side == _LATE else "after"
            seen = (
                f"the step {neighbour} explains {fitted.moved:.0%} of the rewards' variance on "
                f"held-out episodes, their own step {fitted.own:.0%}"
            )
        row = "t + 1" if side == _LATE else "t − 1"
        back = "up" if side == _LATE else "down"
        yield Finding(
            f"rewards one row {side}",
            seen,
            f"the reward of decision t seems to stand in row {row}, so every value belongs to "
            "another action",
            f"in the log, move the reward column {back} by one row within each episode; convert "
            "again",
        )
