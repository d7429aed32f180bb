"""Logs in which the rows of an episode do not stand together: grouped by id, ordered by time.

A first pass reads the ids alone. Where one comes back, the second pass spills its columns into
temporary files, and parts are gathered from them episode by episode. In memory stay a few numbers
per row, and the part at hand.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rbve.data.logs.columns import Chunk, Columns, shown
from rbve.data.logs.cut import Runs, comparable, report_empty
from rbve.data.logs.log import Log, Report
from rbve.data.logs.survey import Plan


class Interleaved(NamedTuple):
    episode: np.ndarray  # (R,) int32 per row of the file, episodes counted as they first appear
    example: str  # an id that comes back
    rows: tuple[int, int]  # where it begins and where again


def interleaved(log: Log, name: str) -> Interleaved | None:
    """None where the rows of each episode stand together."""
    runs = Runs()
    keys: list[np.ndarray] = []
    starts: list[np.ndarray] = []
    rows = 0
    for batch in log.batches([name]):
        column = comparable(batch.column(name))
        first = np.flatnonzero(runs.starts(column))
        values = column.take(pa.array(first))
        if pa.types.is_integer(values.type) and not values.null_count:
            keys.append(values.to_numpy(zero_copy_only=False).astype(np.int64))
        else:
            # Of their texts: equal hashes have, among others, the numbers -1 and -2.
            keys.append(np.array([hash(str(value)) for value in values.to_pylist()], np.int64))
        starts.append(rows + first)
        rows += len(batch)
    if runs.rising or not keys:
        return None
    key, start = np.concatenate(keys), np.concatenate(starts)
    _, seen, code = np.unique(key, return_index=True, return_inverse=True)
    if len(seen) == len(key):
        return None
    again = int(np.flatnonzero(seen[code] < np.arange(len(key)))[0])
    first_rows = int(start[seen[code[again]]]), int(start[again])
    by_appearance = np.empty(len(seen), np.int32)
    by_appearance[np.argsort(seen)] = np.arange(len(seen))
    lengths = np.diff(np.append(start, rows))
    example = value_at(log, name, first_rows[1])
    return Interleaved(np.repeat(by_appearance[code], lengths), example, first_rows)


def value_at(log: Log, name: str, row: int) -> str:
    for batch in log.batches([name]):
        if row < len(batch):
            return shown(batch.column(name), row)
        row -= len(batch)
    return "?"


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

    def column(self, name: str) -> np.ndarray:
        dtype, shape = self.kinds[name]
        self.files[name].flush()
        flat = np.memmap(self.files[name], dtype, "r")
        return flat.reshape(-1, *shape)

    def close(self) -> None:
        for file in self.files.values():
            file.close()


def tables(
    log: Log, plan: Plan, report: Report, columns: Columns, found: Interleaved, limit: int
) -> Iterator[tuple[Chunk, int, bool]]:
    """(whole episodes of about `limit` rows, number of their first row, whether they are the last).

    Rows are numbered in the new order.

    From then on `report` takes row numbers of that order.
    """
    spilled, rows = Spilled(), 0
    try:
        for batch in log.batches(plan.roles.columns):
            report_empty(batch.column(plan.roles.episode), plan.roles.episode or "", rows, report)
            spilled.add(columns.chunk(batch, rows))
            rows += len(batch)
        held = {name: spilled.column(name) for name in spilled.files}
        order = ordered(found.episode[:rows], held)
        place = report.place
        report.place = lambda row: place(int(order[row]))
        episode = found.episode[:rows][order]
        starts = np.append(True, episode[1:] != episode[:-1])
        offsets = np.append(np.flatnonzero(starts), rows)
        begin = 0
        while begin < rows:
            at = int(offsets.searchsorted(begin + limit, side="right")) - 1
            stop = int(offsets[max(at, int(offsets.searchsorted(begin)) + 1)])
            table = {name: column[order[begin:stop]] for name, column in held.items()}
            yield {**table, "start": starts[begin:stop]}, begin, stop == rows
            begin = stop
    except OSError as error:
        raise ValueError(
            f"{log.path}: grouping its rows by episode needs room for temporary files in "
            f"{tempfile.gettempdir()} ({error.strerror}); set TMPDIR to a folder with more"
        ) from None
    finally:
        spilled.close()


def ordered(episode: np.ndarray, held: Chunk) -> np.ndarray:
    """Rows by episode, then by time, rows without one last, else as they stand in the file."""
    if "time" not in held:
        return np.argsort(episode, kind="stable")
    return np.lexsort((np.asarray(held["time"]), ~np.asarray(held["timed"]), episode))
