"""Rows of a log as Arrow columns, of data frames too, to what a dataset holds."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.features import Feature, Features, is_finite32


class BadRow(NamedTuple):
    row: int
    why: str


def is_frame(data: Any) -> bool:
    """Whether it offers Arrow's stream interface, as frames of pandas and polars do."""
    return hasattr(data, "__arrow_c_stream__")


def as_table(data: Any) -> pa.Table:
    """A frame as a table of Arrow; ValueError where a column has no one type."""
    try:
        return pa.RecordBatchReader.from_stream(data).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"a data frame that Arrow cannot take: {words}") from None


def frame_rows(features: Features, data: Any) -> np.ndarray:
    """(N, columns) as a dataset holds them; ValueError names the first row that is none."""
    table, bad = encode(features, as_table(data))
    if bad:
        raise ValueError(f"row {bad[0].row}: {bad[0].why}")
    return table


def encode(features: Features, batch: Any) -> tuple[np.ndarray, list[BadRow]]:
    """(N, columns) as a dataset holds them, and the rows that are none, each once, by number.

    Raises:
        ValueError: A column is not there.
    """
    names = batch.schema.names
    if lacking := [name for name in features.names if name not in names]:
        raise ValueError(
            f"the rows lack the column {lacking[0]!r}; the policy needs {', '.join(features.names)}"
        )
    table = np.empty((batch.num_rows, len(features.columns)))
    bad: dict[int, str] = {}
    for place, feature in enumerate(features.columns):
        column = batch.column(feature.name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        table[:, place], wrong = _codes(feature, column)
        for row, why in wrong:
            bad.setdefault(row, why)
    return table, [BadRow(row, bad[row]) for row in sorted(bad)]


def _codes(feature: Feature, column: Any) -> tuple[np.ndarray, Sequence[tuple[int, str]]]:
    if feature.kind == "number":
        values = _numbers(column)
        if values is not None:
            gaps = np.isnan(values)
            good = is_finite32(values) if feature.missing == "error" else is_finite32(values) | gaps
            rows = np.flatnonzero(~good)
            return values, [(int(row), _why(feature, column[int(row)].as_py())) for row in rows]
    return _each(feature, column)


def _numbers(column: Any) -> np.ndarray | None:
    """As doubles, NaN where there is none; None where they are of another kind."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind) or pa.types.is_null(kind) or pa.types.is_string(kind)
    ):  # fmt: skip
        return None
    try:
        if kind != column.type:
            column = column.dictionary_decode()
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException:  # of a text that is no number
        return None


def _each(feature: Feature, column: Any) -> tuple[np.ndarray, list[tuple[int, str]]]:
    """Every different value once, as a row given by name is read."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = [*column.dictionary.to_pylist(), None]
    places = pc.fill_null(column.indices.cast(pa.int64()), len(values) - 1)
    which = places.to_numpy(zero_copy_only=False)
    codes, wrong = np.full(len(values), math.nan), dict[int, str]()
    for index in np.unique(which):
        try:
            codes[index] = feature.code(values[index])
            if feature.kind == "number" and abs(codes[index]) > np.finfo(np.float32).max:
                raise ValueError(_beyond(feature, values[index]))
        except ValueError as error:
            wrong[int(index)] = str(error)
    rows = np.flatnonzero(np.isin(which, list(wrong)))
    return codes[which], [(int(row), wrong[int(which[row])]) for row in rows]


def _why(feature: Feature, value: Any) -> str:
    try:
        feature.code(math.nan if value is None else value)
    except ValueError as error:
        return str(error)
    return _beyond(feature, value)


def _beyond(feature: Feature, value: Any) -> str:
    return f"column {feature.name!r} holds {value!r}, which 32 bits cannot"
