"""Tells the system which rows of a mapped column will be read, so that a disk reads them at once.

One after another, as they are touched, each with much around it, costs a hundred times as long.
"""

import mmap
from typing import Any

import numpy as np

from rbve.data.dataset import MappedRows


class ReadAhead:
    """Hints about one column; without a map beneath it, or without hints on the system, nothing."""

    def __init__(self, column: Any) -> None:
        self._rows = column.rows if isinstance(column, MappedRows) else None
        base = column.base if isinstance(column, MappedRows) else column
        self._map = getattr(base, "_mmap", None) if hasattr(mmap, "MADV_WILLNEED") else None
        self._row_bytes = base.nbytes // max(len(base), 1)
        self._end = base.nbytes
        if self._map is not None:
            self._map.madvise(mmap.MADV_RANDOM)

    def expect(self, first: np.ndarray, last: np.ndarray) -> None:
        """Rows first[k] to last[k], for every k."""
        if self._map is None:
            return
        if self._rows is not None:
            first, last = self._rows[first], self._rows[last]
        start = first * self._row_bytes // mmap.PAGESIZE * mmap.PAGESIZE
        stop = np.minimum((last + 1) * self._row_bytes, self._end)
        for a, b in sorted(zip(start.tolist(), stop.tolist(), strict=True)):
            self._map.madvise(mmap.MADV_WILLNEED, a, b - a)
