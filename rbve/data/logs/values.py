"""Arrow types and columns to NumPy columns. Each function also says which rows hold a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.features import category_name

_TRUE = pa.array(["true", "t", "yes", "y", "1", "1.0"])
_FALSE = pa.array(["false", "f", "no", "n", "0", "0.0"])


def is_array(kind: pa.DataType | None) -> bool:
    return kind is not None and (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()


def is_number(kind: pa.DataType) -> bool:
    return (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def is_category(kind: pa.DataType) -> bool:
    return _is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_dictionary(kind)


def is_time(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) and not pa.types.is_interval(kind)


def is_mask(kind: pa.DataType) -> bool:
    """Arrays of numbers or truth values."""
    inner = kind.value_type if is_array(kind) else None
    return inner is not None and (is_number(inner) or pa.types.is_boolean(inner))


def bare(kind: pa.DataType) -> pa.DataType:
    """What a dictionary holds, or the type itself."""
    return bare(kind.value_type) if pa.types.is_dictionary(kind) else kind


def inner(kind: pa.DataType) -> pa.DataType:
    """What arrays, or arrays of arrays, hold."""
    return inner(kind.value_type) if is_array(kind) else kind


def plain(column: pa.Array) -> pa.Array:
    """Without the layers files put around values: dictionaries, views, decimals, half floats."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(column.storage)
    if pa.types.is_dictionary(kind):
        return plain(column.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(column))
    if _is_text(kind):
        return column if kind == pa.string() else column.cast(pa.string())
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    return column


def present(column: pa.Array) -> np.ndarray:
    """(N,) bool, which rows are not null."""
    if column.null_count == 0:
        return np.ones(len(column), bool)
    return column.is_valid().to_numpy(zero_copy_only=False)


def numbers(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(values in their own type, 0 where there is none; which rows hold one)."""
    column = plain(column)
    if pa.types.is_null(column.type):
        return np.zeros(len(column)), np.zeros(len(column), bool)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_temporal(column.type):
        column = _ticks(column)
    known = present(column)
    if column.null_count:
        column = column.fill_null(0)
    return column.to_numpy(zero_copy_only=False), known


def floats(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(float64 values, NaN in empty cells; which cells are not empty)."""
    values, known = numbers(column)
    result = values.astype(np.float64)
    result[~known] = np.nan
    return result, known & ~np.isnan(result)


def _ticks(column: pa.Array) -> pa.Array:
    """Times as whole numbers in their own unit."""
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def flags(column: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(True or False, which rows hold something, which of those are no flag)."""
    column = plain(column)
    if _is_text(column.type):
        known = present(column)
        words = pc.utf8_lower(pc.utf8_trim_whitespace(column))
        on = pc.is_in(words, _TRUE).to_numpy(zero_copy_only=False)
        off = pc.is_in(words, _FALSE).to_numpy(zero_copy_only=False)
        return on, known, known & ~(on | off)
    values, known = numbers(column)
    if values.dtype.kind == "f":
        known &= ~np.isnan(values)
    on = known & (values == 1)
    return on, known, known & ~on & (values != 0)


def codes(
    column: pa.Array, index: Mapping[str, int], other: int = -1
) -> tuple[np.ndarray, np.ndarray]:
    """(index of each value's name, `other` where it has none, −1 if empty; which hold a value)."""
    column = without_nan(plain(column))
    known = present(column)
    encoded = column.dictionary_encode()
    of_value = [index.get(category_name(value), other) for value in encoded.dictionary.to_pylist()]
    positions = encoded.indices.fill_null(len(of_value)).to_numpy(zero_copy_only=False)
    return np.array([*of_value, -1], np.int32)[positions], known


def without_nan(column: pa.Array) -> pa.Array:
    """NaN says 'missing' in files made from data frames."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


def comparable(column: pa.Array) -> pa.Array:
    """Ids as values that compare."""
    column = without_nan(plain(column))
    if pa.types.is_null(column.type):
        return column.cast(pa.int8())
    return _ticks(column) if pa.types.is_temporal(column.type) else column


def mask_columns(columns: Sequence[pa.Array]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(N, columns) from one flag column per action; rows with any gap count as empty."""
    each = [flags(column) for column in columns]
    on, known, wrong = (np.stack(part, axis=1) for part in zip(*each, strict=True))
    return on, np.all(known, axis=1), np.any(wrong, axis=1)


def mask_arrays(column: pa.Array, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(N, width) from one column of arrays."""
    values, known, odd = arrays(column, (width,), np.dtype(np.float64))
    on = values == 1
    return on, known, odd | (known & ~(on | (values == 0)).all(axis=1))


def shape_of(column: pa.Array) -> tuple[int, ...] | None:
    """Of the first row that has one."""
    for row in range(len(column)):
        value, shape = column[row], []
        while value.is_valid and isinstance(value, pa.ListScalar | pa.FixedSizeListScalar):
            values = value.values
            shape.append(len(values))
            if not len(values):
                break
            value = values[0]
        if shape:
            return tuple(shape)
    return None


def arrays(
    column: pa.Array, shape: tuple[int, ...], dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """((N, *shape), which rows hold an array, which of those have another size or gaps)."""
    known = present(column)
    size = math.prod(shape)
    result = np.zeros((len(column), size), dtype)
    flat = _flattened(column if known.all() else column.filter(pa.array(known)), size)
    wrong = np.zeros(len(column), bool)
    if flat is not None:
        result[known] = flat.reshape(-1, size)
        return result.reshape(-1, *shape), known, wrong
    # Only files with faults come here, so slow is fine.
    for row in np.flatnonzero(known):
        values = _flattened(column[int(row) : int(row) + 1], size)
        wrong[row] = values is None
        result[row] = (np.nan if dtype.kind == "f" else 0) if values is None else values
    return result.reshape(-1, *shape), known, wrong


def _flattened(column: pa.Array, size: int) -> np.ndarray | None:
    """All numbers one after another, or None if rows differ in size or have gaps."""
    rows = len(column)
    while is_array(column.type):
        lengths = pc.min_max(pc.list_value_length(column))
        if column.null_count or lengths["min"] != lengths["max"]:
            return None
        column = column.flatten()
    if column.null_count or len(column) != rows * size:
        return None
    return to_numpy(column)


def to_numpy(column: pa.Array) -> np.ndarray:
    """Numbers without a gap, in their own type."""
    if pa.types.is_float16(column.type):  # plain() would widen it
        return column.to_numpy(zero_copy_only=False)
    return np.asarray(numbers(column)[0])


def lengths(column: pa.Array) -> np.ndarray:
    """Of the arrays in a column; 0 where there is none."""
    return numbers(pc.list_value_length(column))[0]
