"""Where the rows of episodes stand, and tables of whole episodes made of them.

The survey reads the ids. Where one comes back, the reading pass spills its columns into temporary
files, and tables are gathered from them episode by episode. In memory stay a few numbers per row,
and the table at hand.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.logs.roles import Chunk


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


class Spilled:
    """Columns of all rows in temporary files, which go with the process."""

    def __init__(self) -> None:
        self.files: dict[str, Any] = {}
        self.kinds: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}

    def add(self, chunk: Chunk) -> None:
        for name, column in chunk.items():
            if name not in self.files:
                self.files[name] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the rest
                self.kinds[name] = (column.dtype, column.shape[1:])
            self.files[name].write(np.ascontiguousarray(column).data)

    def columns(self) -> Chunk:
        """Mapped from the files."""
        for file in self.files.values():
            file.flush()
        return {
            name: np.memmap(self.files[name], dtype, "r").reshape(-1, *shape)
            for name, (dtype, shape) in self.kinds.items()
        }

    def close(self) -> None:
        for file in self.files.values():
            file.close()


def episode_order(episode: np.ndarray, columns: Chunk) -> np.ndarray:
    """Rows by episode, then by time, rows without one last, else as they stand in the file."""
    if "time" not in columns:
        return np.argsort(episode, kind="stable")
    return np.lexsort((np.asarray(columns["time"]), ~np.asarray(columns["timed"]), episode))


def in_episodes(
    columns: Chunk, episode: np.ndarray, order: np.ndarray, limit: int
) -> Iterator[tuple[Chunk, int, bool]]:
    """(whole episodes of about `limit` rows, number of their first row, whether they are the last).

    Rows are numbered in the new order.
    """
    episode = episode[order]
    rows = len(order)
    starts = np.append(True, episode[1:] != episode[:-1])
    offsets = np.append(np.flatnonzero(starts), rows)
    begin = 0
    while begin < rows:
        at = int(offsets.searchsorted(begin + limit, side="right")) - 1
        stop = int(offsets[max(at, int(offsets.searchsorted(begin)) + 1)])
        table = {name: column[order[begin:stop]] for name, column in columns.items()}
        yield {**table, "start": starts[begin:stop]}, begin, stop == rows
        begin = stop


def whole_episodes(chunks: Iterable[Chunk], limit: int) -> Iterator[tuple[Chunk, int, bool]]:
    """The same of chunks with a column `start`, whose episodes stand together."""
    held: list[Chunk] = []
    first = rows = 0  # number of the first row held, and how many are held
    last_start = 0  # number of the row where the last episode begins
    for chunk in chunks:
        starts = np.flatnonzero(chunk["start"])
        if len(starts):
            last_start = first + rows + int(starts[-1])
        held.append(chunk)
        rows += len(chunk["start"])
        if rows >= limit and last_start > first:
            table = _joined(held)
            stop = last_start - first
            yield {name: column[:stop] for name, column in table.items()}, first, False
            held = [{name: column[stop:].copy() for name, column in table.items()}]
            first, rows = last_start, rows - stop
            del table
    if rows:
        yield _joined(held), first, True


def _joined(held: list[Chunk]) -> Chunk:
    if len(held) == 1:
        return held[0]
    table = {name: np.concatenate([chunk[name] for chunk in held]) for name in held[0]}
    held.clear()
    return table
