"""What the survey of a log gathers from its columns, batch by batch."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

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
