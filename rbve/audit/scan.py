"""One pass over the observations: values per column, what is not finite, what is logged twice."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rbve.audit._reading import Reach, chunks, place, rows_at
from rbve.data.dataset import Dataset
from rbve.data.features import is_finite32

_Words = np.ndarray  # uint64
_FLAT_COLUMNS = 4096  # more numbers than this are not columns a person named
_RECURRING = 0.02  # share of different episodes that meet in their middle: then states recur


@dataclass(frozen=True)
class _Column:
    name: str
    low: float
    high: float
    mean: float
    deviation: float
    binary: bool  # holds 0 and 1 alone
    missing: float  # share of rows without a value


@dataclass(frozen=True)
class Scan:
    """What the observations hold."""

    episodes: int  # read
    rows: int  # read
    whole: bool  # all of them were
    columns: list[_Column]  # of flat observations; empty for boards and pictures
    duplicate_columns: list[tuple[str, str]]
    low: float  # over all finite values
    high: float
    bad_rows: int  # not finite in 32 bits
    bad_place: str  # of the first
    bad_columns: list[str]  # of flat observations
    copies: int  # episodes equal to an earlier one in every row
    copy_example: str
    chance_copies: bool  # states recur so often that equal episodes may arise by chance
    repeated_rows: float  # share of decisions equal to the one before, observation and all


def scan(dataset: Dataset, within: Reach) -> Scan:
    size, features = int(np.prod(dataset.obs_shape)), dataset.features
    # Columns have meanings of their own, as opposed to the entries of a board or a picture.
    flat = size <= _FLAT_COLUMNS and sum(side > 1 for side in dataset.obs_shape) <= 1
    names = [f"column {index}" for index in range(size)] if features is None else features.names
    shift, sums, extremes, wrong, states, hashes = None, [], [], [], [], []
    for rows, raw in chunks(dataset, within.rows):
        values = raw.reshape(len(rows), -1)
        finite = is_finite32(values) if values.dtype.kind == "f" else np.ones(values.shape, bool)
        allowed = finite
        if features is not None and not finite.all():
            allowed = features.accepts(values)
        known = values if finite.all() else np.where(finite, values, 0)
        wrong.append(~allowed.all(axis=1))
        extremes += [float(known.min()), float(known.max())]
        if flat:
            known = known.astype(np.float64)
            shift = known[0].copy() if shift is None else shift
            sums.append(_column_sums(rows, known, finite, allowed, shift))
        states.append(_state_hashes(values))
        hashes.append(states[-1] + _decision_hashes(dataset.action[rows], dataset.reward[rows]))
    row_hash, bad = np.concatenate(hashes), np.concatenate(wrong)
    copies, example, by_chance = _copied_episodes(row_hash, np.concatenate(states), within)
    columns, duplicates, bad_columns = _combined(names, sums, shift, len(row_hash))
    return Scan(
        episodes=len(within.episodes),
        rows=len(row_hash),
        whole=within.whole,
        columns=columns,
        duplicate_columns=duplicates,
        low=min(extremes),
        high=max(extremes),
        bad_rows=int(bad.sum()),
        bad_place=place(dataset, int(within.rows[np.argmax(bad)])) if bad.any() else "",
        bad_columns=bad_columns,
        copies=copies,
        copy_example=example,
        chance_copies=by_chance,
        repeated_rows=_repeated(row_hash, within),
    )


def _column_sums(
    rows: np.ndarray, values: np.ndarray, finite: np.ndarray, allowed: np.ndarray, shift: np.ndarray
) -> dict[str, np.ndarray]:
    """Figures of every column over a chunk; sums are of differences from `shift`."""
    apart = np.where(finite, values - shift, 0)
    bits = (values + 0.0).view(np.uint64)  # −0 becomes 0
    return {
        "count": finite.sum(axis=0),
        "total": apart.sum(axis=0),
        "squares": (apart**2).sum(axis=0),
        "low": np.where(finite, values, np.inf).min(axis=0),
        "high": np.where(finite, values, -np.inf).max(axis=0),
        "binary": ((values == 0) | (values == 1)).all(axis=0),
        "allowed": allowed.all(axis=0),
        "digest": _mixed(bits ^ _mixed(rows.astype(np.uint64))[:, None]).sum(axis=0),
    }


_HOW: dict[str, Any] = {"low": np.min, "high": np.max, "binary": np.all, "allowed": np.all}


def _combined(
    names: list[str], parts: list[dict[str, np.ndarray]], shift: np.ndarray | None, rows: int
) -> tuple[list[_Column], list[tuple[str, str]], list[str]]:
    """Columns; pairs of one that varies and an earlier one it equals; columns not finite."""
    if shift is None:
        return [], [], []
    held = {name: [part[name] for part in parts] for name in parts[0]}
    whole = {name: _HOW.get(name, np.sum)(each, axis=0) for name, each in held.items()}
    count = np.maximum(whole["count"], 1)
    mean = whole["total"] / count
    deviation = np.sqrt(np.maximum(whole["squares"] / count - mean**2, 0))
    low, high = (np.where(np.isfinite(whole[end]), whole[end], 0) for end in ("low", "high"))
    missing = 1 - whole["count"] / max(rows, 1)
    figures = (low, high, mean + shift, deviation, whole["binary"], missing)
    columns = zip(names, *(each.tolist() for each in figures), strict=True)
    seen: dict[int, str] = {}
    digests = zip(names, whole["digest"].tolist(), whole["high"] > whole["low"], strict=True)
    earlier = [(name, seen.setdefault(digest, name)) for name, digest, varies in digests if varies]
    return (
        [_Column(*each) for each in columns],
        [(name, first) for name, first in earlier if name != first],
        [name for name, allowed in zip(names, whole["allowed"], strict=True) if not allowed],
    )


def _mixed(words: _Words) -> _Words:
    """Bits spread so that sums of words hardly ever agree by accident."""
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ (words >> np.uint64(29))) * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ (words >> np.uint64(32))


def _state_hashes(flat: np.ndarray) -> _Words:
    """One word per row over its observation."""
    data = np.ascontiguousarray(flat).view(np.uint8).reshape(len(flat), -1)
    data = np.pad(data, ((0, 0), (0, -data.shape[1] % 8)))
    places = _mixed(np.arange(3, data.shape[1] // 8 + 3, dtype=np.uint64))
    return _mixed(data.view(np.uint64) ^ places).sum(axis=1)


def _decision_hashes(action: np.ndarray, reward: np.ndarray) -> _Words:
    words = np.stack([action.astype(np.int64), reward.astype(np.float64).view(np.int64)])
    places = _mixed(np.arange(1, 3, dtype=np.uint64))
    return _mixed(words.view(np.uint64) ^ places[:, None]).sum(axis=0)


def _copied_episodes(row_hash: _Words, state: _Words, within: Reach) -> tuple[int, str, bool]:
    """(copies, an example, whether chance may explain them).

    Where states recur, as on a small board, two episodes may be equal without a fault. Whether
    they do shows in the middle of the episodes that differ: there a state of a continuous problem
    is its own.
    """
    starts = within.offsets[:-1]
    lengths = np.diff(within.offsets)
    step = (np.arange(len(row_hash)) - np.repeat(starts, lengths)).astype(np.uint64)
    digest = np.add.reduceat(_mixed(row_hash + _mixed(step)), starts)
    _, first, group = np.unique(digest, return_index=True, return_inverse=True)
    copies = len(digest) - len(first)
    if copies == 0:
        return 0, "", False
    copy = int(np.flatnonzero(first[group] != np.arange(len(digest)))[0])
    original = int(first[group[copy]])
    example = f"episode {within.episodes[copy]} equals episode {within.episodes[original]}"
    middle = state[starts[first] + (lengths[first] - 1) // 2]
    recurring = 1 - len(np.unique(middle)) / len(middle)
    return copies, example, recurring > _RECURRING


def _repeated(row_hash: _Words, within: Reach) -> float:
    """Share of decisions after the first that equal the one before."""
    # First rows have none before, and final rows are no decisions.
    ends = rows_at(len(row_hash), within.offsets[:-1], within.offsets[1:] - 1)
    rows = np.flatnonzero(~ends)
    return float((row_hash[rows] == row_hash[rows - 1]).mean()) if len(rows) else 0.0
