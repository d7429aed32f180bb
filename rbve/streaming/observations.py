"""Columns of numbers without names that a policy knows: one of arrays, or one for each number."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.registry import did_you_mean
from rbve.runtime.arrow import BadRow

COLUMN = "observation"


def observation_columns(
    asked: Sequence[str], names: Sequence[str], shape: tuple[int, ...]
) -> list[str]:
    """The column of arrays, or the columns of one number each, in their order.

    Args:
        asked: Names, or one prefix as in "pixel_*", whose columns stand in the file in order; ()
            = `observation`, or columns that begin with `observation_`.
        names: Of the file.
        shape: Of an observation.

    Raises:
        ValueError: They are not there.
    """
    size = math.prod(shape)
    if not asked:
        asked = (COLUMN,) if COLUMN in names else (f"{COLUMN}_*",)
    columns: list[str] = []
    for name in asked:
        own = [each for each in names if each.startswith(name[:-1])] if name[-1:] == "*" else [name]
        if lacking := [each for each in own if each not in names] or [name] * (not own):
            hint = did_you_mean(lacking[0], names)
            raise ValueError(
                f"no column {lacking[0]!r}.{hint} The data of this policy had no named columns: "
                f"name those of the {size} numbers of an observation with --observation"
            )
        columns += own
    if len(columns) not in (1, size):
        raise ValueError(
            f"{len(columns)} columns for an observation of {size} numbers, shape {shape}; name "
            "one of arrays, or one for each number"
        )
    return columns


def observations(
    batch: pa.RecordBatch, columns: Sequence[str], shape: tuple[int, ...]
) -> tuple[np.ndarray, list[BadRow]]:
    """(N, *shape), bytes where the file holds bytes, and the rows that are none."""
    size = math.prod(shape)
    arrays = [batch.column(name) for name in columns]
    if len(columns) == 1 and _is_list(arrays[0].type):
        made, why = _of_lists(arrays[0], size)
    else:
        made = np.stack([_numbers(each) for each in arrays], axis=1)
        why = {}
    with np.errstate(over="ignore"):
        finite = np.isfinite(made.astype(np.float32))
    for row in np.flatnonzero(~finite.all(axis=1)):
        place = int(np.argmin(finite[row]))
        where = repr(columns[place]) if len(columns) > 1 else f"{columns[0]!r}, number {place},"
        why.setdefault(int(row), f"column {where} takes a finite number")
        made[row] = 0
    return made.reshape(-1, *shape), [BadRow(row, why[row]) for row in sorted(why)]


def _is_list(kind: Any) -> bool:
    types = pa.types
    return types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)


def _of_lists(column: Any, size: int) -> tuple[np.ndarray, dict[int, str]]:
    """Of arrays, or arrays of arrays, row by row in C order."""
    ends = np.arange(len(column) + 1)  # where the numbers of each row begin and end
    while _is_list(column.type):
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        inner = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))])
        ends, column = inner[ends], pc.list_flatten(column)
    counts = np.diff(ends)
    values, good = _numbers(column), counts == size
    made = np.zeros((len(counts), size), values.dtype)
    if good.all():
        made = values.reshape(-1, size)
    elif good.any():
        made[good] = values[ends[:-1][good][:, None] + np.arange(size)]
    why = {
        int(row): f"an observation of {counts[row]} numbers; the policy takes {size}"
        for row in np.flatnonzero(~good)
    }
    return made.copy() if not made.flags.writeable else made, why


def _numbers(column: Any) -> np.ndarray:
    """As they are, NaN where there is none or what is there is no number."""
    kind = column.type
    if pa.types.is_uint8(kind) and not column.null_count:
        return column.to_numpy(zero_copy_only=False)
    try:
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException:  # texts, some of which are no numbers
        return np.array([_number(value) for value in column.to_pylist()])


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
