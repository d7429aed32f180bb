"""Columns of a log: their types, their values as NumPy arrays, and figures of all their rows."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.features import Feature, category_name

_TRUE = pa.array(["true", "t", "yes", "y", "1", "1.0"])
_FALSE = pa.array(["false", "f", "no", "n", "0", "0.0"])


def is_array(kind: pa.DataType | None) -> bool:
    return isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()


def is_number(kind: pa.DataType) -> bool:
    whole_or_null = pa.types.is_integer(kind) or pa.types.is_null(kind)
    return whole_or_null or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def is_category(kind: pa.DataType) -> bool:
    return _is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_dictionary(kind)


def is_time(kind: pa.DataType) -> bool:
    return pa.types.is_temporal(kind) and not pa.types.is_interval(kind)


def is_mask(kind: pa.DataType) -> bool:
    return is_array(kind) and (is_number(kind.value_type) or pa.types.is_boolean(kind.value_type))


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
    return column.is_valid().to_numpy(zero_copy_only=False)


def numbers(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(values in their own type, 0 where there is none; which rows hold one that is not NaN)."""
    column = plain(column)
    if pa.types.is_null(column.type):
        return np.zeros(len(column)), np.zeros(len(column), bool)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_temporal(column.type):
        column = _ticks(column)
    cells = column.fill_null(0).to_numpy(zero_copy_only=False)
    return cells, present(column) & ~np.isnan(cells)


def _ticks(column: pa.Array) -> pa.Array:
    """Times as whole numbers in their own unit."""
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def flags(column: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(True or False, which rows hold something, which of those are no flag)."""
    column = plain(column)
    if _is_text(column.type):
        known, words = present(column), pc.utf8_lower(pc.utf8_trim_whitespace(column))
        on = pc.is_in(words, _TRUE).to_numpy(zero_copy_only=False)
        off = pc.is_in(words, _FALSE).to_numpy(zero_copy_only=False)
        return on, known, known & ~(on | off)
    values, known = numbers(column)
    on = known & (values == 1)
    return on, known, known & ~on & (values != 0)


def codes(
    column: pa.Array, index: Mapping[str, int], other: int = -1
) -> tuple[np.ndarray, np.ndarray]:
    """(index of each value's name, `other` where it has none, −1 if empty; which hold a value)."""
    column = without_nan(plain(column))
    encoded = column.dictionary_encode()
    of_value = [index.get(category_name(value), other) for value in encoded.dictionary.to_pylist()]
    positions = encoded.indices.fill_null(len(of_value)).to_numpy(zero_copy_only=False)
    return np.array([*of_value, -1], np.int32)[positions], present(column)


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


def shape_of(column: pa.Array) -> tuple[int, ...] | None:
    """Of the first row that has one."""
    for row in range(len(column)):
        value, shape = column[row], []
        while value.is_valid and isinstance(value, pa.ListScalar | pa.FixedSizeListScalar):
            shape.append(len(value.values))
            if not shape[-1]:
                break
            value = value.values[0]
        if shape:
            return tuple(shape)
    return None


def arrays(
    column: pa.Array, shape: tuple[int, ...], dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """((N, *shape), which rows hold an array, which of those have another size or gaps)."""
    known, wrong = present(column), np.zeros(len(column), bool)
    size = math.prod(shape)
    result = np.zeros((len(column), size), dtype)
    flat = _flattened(column.drop_null(), size)
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
        if column.null_count or len(pc.unique(pc.list_value_length(column))) > 1:
            return None
        column = column.flatten()
    return None if column.null_count or len(column) != rows * size else to_numpy(column)


def to_numpy(column: pa.Array) -> np.ndarray:
    """Numbers without a gap, in their own type."""
    if pa.types.is_float16(column.type):  # plain() would widen it
        return column.to_numpy(zero_copy_only=False)
    return np.asarray(numbers(column)[0])


@dataclass
class Numbers:
    """Mean and deviation, merged batch by batch (Chan et al.), and what types hold values."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # summed about the mean
    low: float = math.inf
    high: float = -math.inf
    single: bool = True  # all values are float32 numbers
    gaps: bool = False

    def add(self, column: pa.Array) -> None:
        cells, known = numbers(column)
        wide = cells.astype(np.float64)
        finite = known & np.isfinite(wide)
        self.gaps |= not finite.all()
        wide = wide[finite]
        if not len(wide):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(wide.mean())
            squares = float(np.square(wide - mean).sum())
            total = self.count + len(wide)
            apart = mean - self.mean
            self.squares += squares + apart * apart * self.count * len(wide) / total
            self.mean += apart * len(wide) / total
            self.single &= bool((wide.astype(np.float32) == wide).all())
        self.count = total
        self.low = min(self.low, float(wide.min()))
        self.high = max(self.high, float(wide.max()))

    @property
    def largest(self) -> float:
        return max(-self.low, self.high)

    def feature(self, name: str) -> Feature:
        """The column as it is standardised."""
        if not self.count or self.low == self.high:
            return Feature(name, mean=self.low if self.count else 0.0)
        scale = math.sqrt(self.squares / self.count) if self.squares >= 0 else math.nan
        if not (math.isfinite(self.mean) and 0 < scale < math.inf):  # too wide for float64 sums
            return Feature(name, mean=0.0, scale=self.largest)
        return Feature(name, mean=self.mean, scale=scale)


@dataclass
class Words:
    """Different names in a column and how many rows hold them, up to a limit of names."""

    limit: int
    names: Counter[str] = field(default_factory=Counter)
    gaps: bool = False

    def add(self, column: pa.Array) -> None:
        cells = without_nan(plain(column))
        self.gaps |= cells.null_count > 0
        if len(self.names) > self.limit:
            return
        for each in cells.drop_null().value_counts()[: self.limit + 1].to_pylist():
            self.names[category_name(each["values"])] += each["counts"]  # one for 9 and 9.0

    def renamed(self, names: pa.Array) -> Self:
        """With these in the place of the names, in their order; NaN is a gap."""
        cells = without_nan(names)
        words = type(self)(self.limit, gaps=self.gaps or cells.null_count > names.null_count)
        for name, count in zip(cells.to_pylist(), self.names.values(), strict=True):
            if name is not None:
                words.names[category_name(name)] += count
        return words


class Runs:
    """Where the value of a column changes, over its batches; an empty cell goes with the last."""

    def __init__(self) -> None:
        self._last: pa.Scalar | None = None  # value of the row before

    def starts(self, column: pa.Array) -> np.ndarray:
        """(N,) bool, which rows begin a run of equal values."""
        before = [] if self._last is None else [pa.array([self._last.as_py()], column.type)]
        column = pc.fill_null_forward(pa.concat_arrays([*before, column]))
        changed = pc.not_equal(column[1:], column[:-1]).fill_null(True)
        starts = changed.to_numpy(zero_copy_only=False)
        self._last = column[-1]
        return starts if before else np.append(True, starts)


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
            hashes = [hash(str(value)) for value in values.to_pylist()]
            self._keys.append(np.array(hashes, np.int64))
        if as_numbers is None or not pa.types.is_integer(as_numbers.type):
            self._numbers = None
        elif self._numbers is not None:
            chosen = as_numbers.take(pa.array(first)).fill_null(np.iinfo(np.int64).min)
            self._numbers.append(chosen.to_numpy(zero_copy_only=False))
        self._starts.append(self._rows + first)
        self._rows += len(ids)

    def interleaved(self) -> Interleaved | None:
        if not self._keys:
            return None
        start, key = np.concatenate(self._starts), np.concatenate(self._numbers or self._keys)
        run = np.append(True, key[1:] != key[:-1])  # 7 and 07 are one number
        start, key = start[run], key[run]
        encoded = pa.array(key).dictionary_encode()  # in the order of appearance
        if len(encoded.dictionary) == len(key):
            return None
        code = encoded.indices.to_numpy()
        again = int(np.argmax(code[1:] <= np.maximum.accumulate(code)[:-1])) + 1
        begins = int(np.argmax(code == code[again]))
        lengths = np.diff(np.append(start, self._rows))
        return Interleaved(np.repeat(code, lengths), (int(start[begins]), int(start[again])))
