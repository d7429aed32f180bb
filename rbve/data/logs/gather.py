"""What the survey of a log gathers from its columns, batch by batch."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.features import Feature, category_name
from rbve.data.logs.values import numbers, plain, without_nan

MAX_ACTIONS = 4096  # inferred ones; more can be declared
EXACT = 2.0**53  # whole numbers beyond it are not all float64


@dataclass
class Numbers:
    """Mean and deviation, merged batch by batch (Chan et al.), and what types hold the values."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # summed about the mean
    low: float = math.inf
    high: float = -math.inf
    single: bool = True  # all values are float32 numbers
    gaps: bool = False

    def add(self, column: pa.Array) -> None:
        values, known = numbers(column)
        wide = values.astype(np.float64)
        finite = known & np.isfinite(wide)
        self.gaps |= not finite.all()
        wide = wide[finite]
        if not len(wide):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(wide.mean())
            squares = float(np.square(wide - mean).sum())
            total = self.count + len(wide)
            apart = mean - self.mean
            self.squares += squares + apart * apart * self.count * len(wide) / total
            self.mean += apart * len(wide) / total
            self.single &= bool((wide.astype(np.float32) == wide).all())
        self.count = total
        self.low = min(self.low, float(wide.min()))
        self.high = max(self.high, float(wide.max()))

    @property
    def largest(self) -> float:
        return max(-self.low, self.high)

    def feature(self, name: str) -> Feature:
        """The column as it is standardised."""
        if not self.count or self.low == self.high:
            return Feature(name, mean=self.low if self.count else 0.0)
        scale = math.sqrt(self.squares / self.count) if self.squares >= 0 else math.nan
        if not (math.isfinite(self.mean) and 0 < scale < math.inf):  # too wide for float64 sums
            return Feature(name, mean=0.0, scale=self.largest)
        return Feature(name, mean=self.mean, scale=scale)


@dataclass
class Words:
    """Different names in a column and how many rows hold them, up to a limit of names."""

    limit: int
    names: Counter[str] = field(default_factory=Counter)
    gaps: bool = False

    def add(self, column: pa.Array) -> None:
        values = without_nan(plain(column))
        self.gaps |= values.null_count > 0
        if len(self.names) > self.limit:
            return
        for each in values.drop_null().value_counts()[: self.limit + 1].to_pylist():
            self.names[category_name(each["values"])] += each["counts"]  # one for 9 and 9.0

    def renamed(self, names: pa.Array) -> Words:
        """With these in the place of the names, in their order; NaN is a gap."""
        values = without_nan(names)
        words = Words(self.limit, gaps=self.gaps or values.null_count > names.null_count)
        for name, count in zip(values.to_pylist(), self.names.values(), strict=True):
            if name is not None:
                words.names[category_name(name)] += count
        return words


@dataclass
class Ids:
    """Which of the possible action ids occur, and the largest number beyond them."""

    occurs: np.ndarray = field(default_factory=lambda: np.zeros(MAX_ACTIONS, bool))
    beyond: float = -1.0

    def add(self, column: pa.Array) -> None:
        values, known = numbers(column)
        whole = known & (values >= 0) & (np.floor(values) == values)
        small = whole & (values < MAX_ACTIONS)
        self.occurs[values[small].astype(np.int64)] = True
        if (whole & ~small).any():
            self.beyond = max(self.beyond, float(values[whole & ~small].max()))


class Runs:
    """Where the value of a column changes, over its batches; an empty cell goes with the last."""

    def __init__(self) -> None:
        self._last: pa.Scalar | None = None  # value of the row before

    def starts(self, column: pa.Array) -> np.ndarray:
        """(N,) bool, which rows begin a run of equal values."""
        if column.null_count:
            column = pc.fill_null_forward(self._continued(column))
        changed = pc.not_equal(column[1:], column[:-1]).fill_null(True)
        result = np.append(True, changed.to_numpy(zero_copy_only=False))
        if self._last is not None:
            result[0] = column[0] != self._last
        self._last = column[len(column) - 1]
        return result

    def _continued(self, column: pa.Array) -> pa.Array:
        if column[0].is_valid or self._last is None:
            return column
        return pa.concat_arrays([pa.array([self._last.as_py()], column.type), column[1:]])


class Interleaved(NamedTuple):
    """Rows of an episode that do not stand together."""

    episode: np.ndarray  # (R,) int32 per row of the file, episodes counted as they first appear
    rows: tuple[int, int]  # where an id begins and where again


class EpisodeOrder:
    """Finds out whether the rows of each episode stand together, from a column of ids."""

    def __init__(self) -> None:
        self._runs = Runs()
        self._keys: list[np.ndarray] = []  # of each run: the id, or a hash of its text
        self._numbers: list[np.ndarray] | None = []  # of texts: the id as a number
        self._starts: list[np.ndarray] = []
        self._rows = 0

    def add(self, ids: pa.Array, as_numbers: pa.Array | None = None) -> None:
        """The next batch; of texts `as_numbers` too, as long as all are whole."""
        first = np.flatnonzero(self._runs.starts(ids))
        values = ids.take(pa.array(first))
        if pa.types.is_integer(values.type) and not values.null_count:
            self._keys.append(values.to_numpy(zero_copy_only=False).astype(np.int64))
        else:
            # Of their texts: equal hashes have, among others, the numbers -1 and -2.
            self._keys.append(
                np.array([hash(str(value)) for value in values.to_pylist()], np.int64)
            )
        if as_numbers is None or not pa.types.is_integer(as_numbers.type):
            self._numbers = None
        elif self._numbers is not None:
            chosen = as_numbers.take(pa.array(first)).fill_null(np.iinfo(np.int64).min)
            self._numbers.append(chosen.to_numpy(zero_copy_only=False))
        self._starts.append(self._rows + first)
        self._rows += len(ids)

    def interleaved(self) -> Interleaved | None:
        """None where the rows of each episode stand together."""
        if not self._keys:
            return None
        start, key = np.concatenate(self._starts), np.concatenate(self._numbers or self._keys)
        run = np.append(True, key[1:] != key[:-1])  # 7 and 07 are one number
        start, key = start[run], key[run]
        if (key[1:] > key[:-1]).all():
            return None
        _, seen, code = np.unique(key, return_index=True, return_inverse=True)
        if len(seen) == len(key):
            return None
        again = int(np.flatnonzero(seen[code] < np.arange(len(key)))[0])
        by_appearance = np.empty(len(seen), np.int32)
        by_appearance[np.argsort(seen)] = np.arange(len(seen))
        lengths = np.diff(np.append(start, self._rows))
        rows = int(start[seen[code[again]]]), int(start[again])
        return Interleaved(np.repeat(by_appearance[code], lengths), rows)
