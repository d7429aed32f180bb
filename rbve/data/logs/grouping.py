"""Rows gathered into tables of whole episodes, in the order of the file or by episode and time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from rbve.data.logs.roles import Chunk


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
