"""Rows as a dataset holds them to what a network sees: what Features.encode does, for all columns
at once, so that one row costs little."""

import math

import numpy as np

from rbve.data.features import Features, range_of


class Encoder:
    def __init__(self, features: Features) -> None:
        columns = list(enumerate(features.columns))
        sizes = np.array([column.size for _, column in columns])
        first = np.concatenate([[0], np.cumsum(sizes)])
        self._size = int(first[-1])
        numbers = [(i, column) for i, column in columns if column.kind == "number"]
        self._numbers = np.array([i for i, _ in numbers], np.intp)
        self._place = first[self._numbers]
        self._mean = np.array([column.mean for _, column in numbers])
        self._scale = np.array([column.scale for _, column in numbers])
        self._clip = np.array([column.clip for _, column in numbers])
        self._clips = bool(np.isfinite(self._clip).any())
        self._low, self._high = np.array([range_of(c) for _, c in numbers]).reshape(-1, 2).T
        self._levels = [
            (i, first[i], len(column.categories))
            for i, column in columns
            if column.kind != "number"
        ]
        flagged = [i for i, column in columns if column.missing == "indicator"]
        self._flagged = np.array(flagged, np.intp)
        self._flags = first[1:][self._flagged] - 1
        self._gaps = any(column.missing != "error" for _, column in columns)
        self._columns = [
            (c.kind == "number", int(place), c.mean, c.scale, c.clip, range_of(c),
             len(c.categories), int(place) + c.size - 1 if c.missing == "indicator" else -1)
            for c, place in zip(features.columns, first[:-1], strict=True)
        ]  # fmt: skip

    def __call__(self, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(B, columns) to the network's (B, size) float32, and which rows lie within what the data
        holds: (B,) bool, False where Features.far names a column."""
        count = len(table)
        if count == 1 and table.dtype == np.float64:
            return self._one(table[0].tolist())
        seen = np.zeros((count, self._size), np.float32)
        inside = np.ones(count, np.bool_)
        if len(self._numbers):
            raw = table[:, self._numbers]
            values = (raw - self._mean) / self._scale
            if self._clips:
                values = np.minimum(np.maximum(values, -self._clip), self._clip)
            if self._gaps:
                values[np.isnan(raw)] = 0
            seen[:, self._place] = values
            inside &= ~((raw < self._low) | (raw > self._high)).any(axis=1)
        rows = np.arange(count)
        for index, place, levels in self._levels:
            codes = table[:, index]
            known = (codes >= 0) & (codes < levels) & (codes == np.floor(codes))
            if known.all():
                seen[rows, place + codes.astype(np.intp)] = 1
            else:
                seen[rows[known], place + codes[known].astype(np.intp)] = 1
                inside &= known | np.isnan(codes)
        if len(self._flagged):
            seen[:, self._flags] = np.isnan(table[:, self._flagged])
        return seen, inside

    def _one(self, row: list[float]) -> tuple[np.ndarray, np.ndarray]:
        """The same of one row, for which calls of NumPy would take longer than the arithmetic."""
        seen, inside = [0.0] * self._size, True
        for value, column in zip(row, self._columns, strict=True):
            number, place, mean, scale, clip, (low, high), levels, flag = column
            if math.isnan(value):
                if flag >= 0:
                    seen[flag] = 1.0
                elif number and not self._gaps:
                    seen[place] = value
            elif number:
                seen[place] = min(max((value - mean) / scale, -clip), clip)
                inside = inside and low <= value <= high
            elif 0 <= value < levels and value == int(value):
                seen[place + int(value)] = 1.0
            else:
                inside = False
        return np.array([seen], np.float32), np.array([inside])
