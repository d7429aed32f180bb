"""One pass over the observations: values per column, what is not finite, what is logged twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rbve.audit.reading import Reach, chunks, column_names, is_flat, place
from rbve.data.dataset import Dataset
from rbve.data.features import is_finite32

_Words = np.ndarray  # uint64
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
    columns = _ColumnSums(dataset) if is_flat(dataset) else None
    extremes = [np.inf, -np.inf]
    bad, first_bad = 0, -1
    states, hashes = [], []
    for rows, raw in chunks(dataset, within):
        flat = raw.reshape(len(rows), -1)
        finite = is_finite32(flat) if flat.dtype.kind == "f" else None
        if finite is not None and not finite.all():
            allowed = finite if dataset.features is None else dataset.features.accepts(flat)
            wrong = ~allowed.all(axis=1)
            if columns is not None:
                columns.wrong |= ~allowed.all(axis=0)
            bad += int(wrong.sum())
            if wrong.any() and first_bad < 0:
                first_bad = int(rows[np.argmax(wrong)])
            known = np.where(finite, flat, 0)
        else:
            known, finite = flat, None
        extremes = [min(extremes[0], float(known.min())), max(extremes[1], float(known.max()))]
        if columns is not None:
            columns.add(rows, known, finite)
        states.append(_state_hashes(flat))
        hashes.append(states[-1] + _decision_hashes(dataset.action[rows], dataset.reward[rows]))
    row_hash = np.concatenate(hashes)
    copies, example, by_chance = _copied_episodes(row_hash, np.concatenate(states), within)
    return Scan(
        episodes=len(within.episodes),
        rows=len(row_hash),
        whole=within.whole,
        columns=[] if columns is None else columns.result(),
        duplicate_columns=[] if columns is None else columns.duplicates(),
        low=extremes[0],
        high=extremes[1],
        bad_rows=bad,
        bad_place=place(dataset, first_bad) if bad else "",
        bad_columns=[] if columns is None else columns.not_finite(),
        copies=copies,
        copy_example=example,
        chance_copies=by_chance,
        repeated_rows=repeated(row_hash, within),
    )


class _ColumnSums:
    """Running figures of every column; values are taken relative to the first row."""

    def __init__(self, dataset: Dataset) -> None:
        self.names = column_names(dataset)
        size = len(self.names)
        self.shift: np.ndarray | None = None
        self.count, self.total, self.squares = (np.zeros(size) for _ in range(3))
        self.low, self.high = np.full(size, np.inf), np.full(size, -np.inf)
        self.binary, self.wrong = np.ones(size, bool), np.zeros(size, bool)
        self.digest = np.zeros(size, np.uint64)
        self.rows = 0

    def add(self, rows: np.ndarray, values: np.ndarray, finite: np.ndarray | None) -> None:
        values = values.astype(np.float64)
        if self.shift is None:
            self.shift = values[0].copy()
        there = np.ones(values.shape, bool) if finite is None else finite
        apart = np.where(there, values - self.shift, 0)
        self.count += there.sum(axis=0)
        self.total += apart.sum(axis=0)
        self.squares += (apart**2).sum(axis=0)
        self.low = np.minimum(self.low, np.where(there, values, np.inf).min(axis=0))
        self.high = np.maximum(self.high, np.where(there, values, -np.inf).max(axis=0))
        self.binary &= ((values == 0) | (values == 1)).all(axis=0)
        self.rows += len(rows)
        bits = (values + 0.0).view(np.uint64)  # −0 becomes 0
        self.digest += _mixed(bits ^ _mixed(rows.astype(np.uint64))[:, None]).sum(axis=0)

    def result(self) -> list[_Column]:
        count = np.maximum(self.count, 1)
        mean = self.total / count
        deviation = np.sqrt(np.maximum(self.squares / count - mean**2, 0))
        low, high = (np.where(np.isfinite(each), each, 0) for each in (self.low, self.high))
        mean = mean + (0 if self.shift is None else self.shift)
        missing = 1 - self.count / max(self.rows, 1)
        numbers = (each.tolist() for each in (low, high, mean, deviation, self.binary, missing))
        return [_Column(*each) for each in zip(self.names, *numbers, strict=True)]

    def duplicates(self) -> list[tuple[str, str]]:
        """(column, the earlier one it equals in every row); constant columns are left out."""
        seen: dict[int, str] = {}
        found = []
        for name, digest, varies in zip(self.names, self.digest, self.high > self.low, strict=True):
            if varies and int(digest) in seen:
                found.append((name, seen[int(digest)]))
            elif varies:
                seen[int(digest)] = name
        return found

    def not_finite(self) -> list[str]:
        return [name for name, wrong in zip(self.names, self.wrong, strict=True) if wrong]


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


def repeated(row_hash: _Words, within: Reach) -> float:
    """Share of decisions after the first that equal the one before."""
    inside = np.ones(len(row_hash), bool)
    inside[within.offsets[:-1]] = False  # first rows have none before
    inside[within.offsets[1:] - 1] = False  # final rows are no decisions
    rows = np.flatnonzero(inside)
    return float((row_hash[rows] == row_hash[rows - 1]).mean()) if len(rows) else 0.0
