"""Where episodes begin: by their ids, by end flags, or every row."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.logs.columns import Chunk
from rbve.data.logs.log import Report
from rbve.data.logs.survey import Plan
from rbve.data.logs.values import plain, present, ticks, without_nan


class Cutter(Protocol):
    def starts(self, batch: pa.RecordBatch, chunk: Chunk, first: int) -> np.ndarray:
        """(N,) bool, which rows begin an episode; batches come in order."""


def make_cutter(plan: Plan, report: Report) -> Cutter:
    if plan.roles.episode is not None:
        return ByIds(plan.roles.episode, report)
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
    """Wherever the id changes."""

    def __init__(self, name: str, report: Report) -> None:
        self.name, self.report = name, report
        self.runs = Runs()

    def starts(self, batch: pa.RecordBatch, chunk: Chunk, first: int) -> np.ndarray:
        column = batch.column(self.name)
        report_empty(column, self.name, first, self.report)
        return self.runs.starts(column)


def report_empty(column: pa.Array, name: str, first: int, report: Report) -> None:
    report.rows(
        "empty episode id",
        ~present(comparable(column)),
        first,
        lambda row: f"column {name!r} is empty; every row needs its episode's id",
    )


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
