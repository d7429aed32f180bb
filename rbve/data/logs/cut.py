"""Where episodes begin: by their ids, by end flags, or every row."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.logs.columns import Chunk, shown
from rbve.data.logs.log import Log, Report
from rbve.data.logs.survey import Plan
from rbve.data.logs.values import plain, present, ticks, without_nan


class Cutter(Protocol):
    def starts(self, batch: pa.RecordBatch, chunk: Chunk, first: int) -> np.ndarray:
        """(N,) bool, which rows begin an episode; batches come in order."""


def make_cutter(log: Log, plan: Plan, report: Report) -> Cutter:
    if plan.roles.episode is not None:
        return ByIds(log, plan.roles.episode, report)
    return ByFlags() if plan.roles.cut == "flags" else EveryRow()


class EveryRow:
    def starts(self, batch: pa.RecordBatch, chunk: Chunk, first: int) -> np.ndarray:
        return np.ones(len(batch), bool)


class ByFlags:
    """After each end, and after the final row that may follow it."""

    def __init__(self) -> None:
        self.ended = self.was_final = True  # as of the row before

    def starts(self, batch: pa.RecordBatch, chunk: Chunk, first: int) -> np.ndarray:
        final = ~chunk["decided"]
        flagged = np.zeros(len(batch), bool)
        for name in ("terminated", "truncated"):
            if name in chunk:
                flagged |= chunk[name]
        ended = np.append(self.ended, (flagged | final)[:-1])
        before_final = np.append(self.was_final, final[:-1])
        self.ended = bool((flagged | final)[-1])
        self.was_final = bool(final[-1])
        return ended & (~final | before_final)


class ByIds:
    """Wherever the id changes. Ids that rise cannot come back; others are looked up once."""

    def __init__(self, log: Log, name: str, report: Report) -> None:
        self.log, self.name, self.report = log, name, report
        self.runs = Runs()
        self.searched = False

    def starts(self, batch: pa.RecordBatch, chunk: Chunk, first: int) -> np.ndarray:
        column = batch.column(self.name)
        empty = ~present(comparable(column))
        self.report.rows(
            "empty episode id",
            empty,
            first,
            lambda row: f"column {self.name!r} is empty; every row needs its episode's id",
        )
        starts = self.runs.starts(column)
        if not self.runs.rising and not self.searched:
            self.searched = True
            find_split(self.log, self.name, self.report)
        return starts


class Runs:
    """Runs of equal values over the batches of a column."""

    def __init__(self) -> None:
        self.last: pa.Scalar | None = None  # value of the row before
        self.rising = True  # every run's value is larger than the one before

    def starts(self, column: pa.Array) -> np.ndarray:
        column = comparable(column)
        if column.null_count:
            column = pc.fill_null_forward(filled(column, self.last))
        changed = pc.not_equal(column[1:], column[:-1]).fill_null(True)
        result = np.append(True, changed.to_numpy(zero_copy_only=False))
        if self.last is not None:
            result[0] = column[0] != self.last
        values = column.filter(pa.array(result))
        if self.last is not None and len(values):
            self.rising &= pc.greater(values[0], self.last).as_py() is True
        self.rising &= pc.all(pc.greater(values[1:], values[:-1])).as_py() is not False
        self.last = column[len(column) - 1]
        return result


def comparable(column: pa.Array) -> pa.Array:
    column = without_nan(plain(column))
    if pa.types.is_null(column.type):
        return column.cast(pa.int8())
    return ticks(column) if pa.types.is_temporal(column.type) else column


def filled(column: pa.Array, last: pa.Scalar | None) -> pa.Array:
    """With the last value before it in an empty first row; only faulty files have one."""
    if column[0].is_valid or last is None:
        return column
    return pa.concat_arrays([pa.array([last.as_py()], column.type), column[1:]])


def find_split(log: Log, name: str, report: Report) -> None:
    """Report an episode whose rows stand in two places: 16 bytes for each run of equal ids."""
    runs = Runs()
    keys: list[np.ndarray] = []
    rows: list[np.ndarray] = []
    first = 0
    for batch in log.batches([name]):
        column = comparable(batch.column(name))
        starts = np.flatnonzero(runs.starts(column))
        values = column.take(pa.array(starts))
        if pa.types.is_integer(values.type) and not values.null_count:
            keys.append(values.to_numpy(zero_copy_only=False).astype(np.int64))
        else:
            keys.append(np.array([hash(value) for value in values.to_pylist()], np.int64))
        rows.append(first + starts)
        first += len(batch)
    key, row = np.concatenate(keys), np.concatenate(rows)
    order = np.argsort(key, kind="stable")
    again = order[1:][key[order[1:]] == key[order[:-1]]]
    if not len(again):
        return
    second = int(again.min())
    earlier = int(row[np.flatnonzero(key == key[second])[0]])
    report.row(
        "split episode",
        int(row[second]),
        f"episode {value_at(log, name, int(row[second]))} of column {name!r} begins here again, "
        f"after {report.place(earlier)}; sort the file by {name!r} so that its rows stand together",
        len(again) - 1,
    )


def value_at(log: Log, name: str, row: int) -> str:
    for batch in log.batches([name]):
        if row < len(batch):
            return shown(batch.column(name), row)
        row -= len(batch)
    return "?"
