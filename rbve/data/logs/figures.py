"""What a survey gathers of a column: figures of numbers, names and how often they occur."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pyarrow as pa

from rbve.data.features import Feature, category_name
from rbve.data.logs.columns import numbers, plain, without_nan

_SINGLE = (np.float32, np.float16, np.int16, np.uint16, np.int8, np.uint8)  # float32 holds them


@dataclass
class Numbers:
    """Mean and deviation, merged batch by batch (Chan et al.), and what types hold values."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # summed about the mean
    low: float = math.inf
    high: float = -math.inf
    single: bool = True  # all values are float32 numbers
    gaps: bool = False

    def add(self, column: pa.Array) -> None:
        cells, known = numbers(column)
        finite = known & np.isfinite(cells) if cells.dtype.kind == "f" else known
        if not finite.all():
            self.gaps, cells = True, cells[finite]
        if not len(cells):
            return
        self.low = min(self.low, float(cells.min()))
        self.high = max(self.high, float(cells.max()))
        wide = cells.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.single and cells.dtype not in _SINGLE:
                self.single = bool((wide.astype(np.float32) == wide).all())
            mean = float(wide.mean())
            squares = float(np.square(wide - mean, out=wide).sum())
            total = self.count + len(wide)
            apart = mean - self.mean
            self.squares += squares + apart * apart * self.count * len(wide) / total
            self.mean += apart * len(wide) / total
        self.count = total

    def merge(self, other: "Numbers") -> None:
        """With the figures of rows that come after."""
        if total := self.count + other.count:
            with np.errstate(over="ignore", invalid="ignore"):
                apart, share = other.mean - self.mean, other.count / total
                self.squares += other.squares + apart * apart * self.count * share
                self.mean += apart * share
        self.count = total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.single &= other.single
        self.gaps |= other.gaps

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
        cells = without_nan(plain(column))
        self.gaps |= cells.null_count > 0
        if len(self.names) > self.limit:
            return
        for each in cells.drop_null().value_counts()[: self.limit + 1].to_pylist():
            self.names[category_name(each["values"])] += each["counts"]  # one for 9 and 9.0

    def merge(self, other: "Words") -> None:
        self.gaps |= other.gaps
        self.names.update(other.names)

    def renamed(self, names: pa.Array) -> Self:
        """With these in the place of the names, in their order; NaN is a gap."""
        cells = without_nan(names)
        words = type(self)(self.limit, gaps=self.gaps or cells.null_count > names.null_count)
        for name, count in zip(cells.to_pylist(), self.names.values(), strict=True):
            if name is not None:
                words.names[category_name(name)] += count
        return words
