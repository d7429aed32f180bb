"""Columns of a log from Arrow to NumPy: values, and the columns of all roles in a batch of rows."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.data.features import OTHER, Features, category_name, is_finite32
from rbve.data.logs.resolve import Log, is_array, is_text
from rbve.data.logs.roles import ROLES, Chunk, Reading
from rbve.data.source import Report

_TRUE = pa.array(["true", "t", "yes", "y", "1", "1.0"])
_FALSE = pa.array(["false", "f", "no", "n", "0", "0.0"])


def plain(column: pa.Array) -> pa.Array:
    """Without the layers files put around values: dictionaries, views, decimals, half floats."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(column.storage)
    if pa.types.is_dictionary(kind):
        return plain(column.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(column))
    if is_text(kind):
        return column if kind == pa.string() else column.cast(pa.string())
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    return column


def present(column: pa.Array) -> np.ndarray:
    if not column.null_count:
        return np.ones(len(column), bool)
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
    known = present(column)
    # Without a gap the values are seen where they lie.
    cells = (column.fill_null(0) if column.null_count else column).to_numpy(zero_copy_only=False)
    return cells, known & ~np.isnan(cells) if cells.dtype.kind == "f" else known


def _ticks(column: pa.Array) -> pa.Array:
    """Times as whole numbers in their own unit."""
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())


def flags(column: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(True or False, which rows hold something, which of those are no flag)."""
    column = plain(column)
    if is_text(column.type):
        known, words = present(column), pc.utf8_lower(pc.utf8_trim_whitespace(column))
        on = pc.is_in(words, _TRUE).to_numpy(zero_copy_only=False)
        off = pc.is_in(words, _FALSE).to_numpy(zero_copy_only=False)
        return on, known, known & ~(on | off)
    values, known = numbers(column)
    on = known & (values == 1)
    return on, known, known & ~on & (values != 0)


def codes(
    column: pa.Array, names: Sequence[str], other: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(each value's place among names, that of `other` if it has none, −1; which hold a value)."""
    column = without_nan(plain(column))
    encoded = column.dictionary_encode()
    place = {name: index for index, name in enumerate(names)}
    default = place.get(other, -1) if other is not None else -1
    of_value = [
        place.get(category_name(value), default) for value in encoded.dictionary.to_pylist()
    ]
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
    """Numbers without a gap, in their own type; half floats too, which plain() would widen."""
    half = pa.types.is_float16(column.type)
    return column.to_numpy(zero_copy_only=False) if half else numbers(column)[0]


class Runs:
    """Where the value of a column changes, over its batches; an empty cell goes with the last."""

    def __init__(self) -> None:
        self._last: pa.Scalar | None = None  # value of the row before

    def starts(self, column: pa.Array) -> np.ndarray:
        """(N,) bool, which rows begin a run of equal values."""
        if pa.types.is_integer(column.type) and not column.null_count and len(column):
            cells = column.to_numpy()
            first = self._last is None or self._last.as_py() != int(cells[0])
            self._last = column[-1]
            return np.append(first, cells[1:] != cells[:-1])
        before = [] if self._last is None else [pa.array([self._last.as_py()], column.type)]
        column = pc.fill_null_forward(pa.concat_arrays([*before, column]))
        changed = pc.not_equal(column[1:], column[:-1]).fill_null(True)
        starts = changed.to_numpy(zero_copy_only=False)
        self._last = column[-1]
        return starts if before else np.append(True, starts)


_Columns = tuple[np.ndarray, np.ndarray, np.ndarray]


class Chunks:
    """Reads batches, which come in order."""

    def __init__(self, reading: Reading, report: Report) -> None:
        self.reading, self.report = reading, report
        self.roles = reading.roles
        self._mask_columns = {role: self._mask_order(role) for role in ("legal", "next_legal")}
        self._runs = Runs()
        self._before = (True, True)  # the row before ended an episode; was a final one

    def read(self, log: Log) -> Iterator[tuple[pa.RecordBatch, Chunk]]:
        """Batches and the columns of all roles in them."""
        rows = 0
        for batch in log.batches(self.roles.in_use):
            chunk: Chunk = {}
            with np.errstate(invalid="ignore", over="ignore"):
                for role in ROLES:
                    if self.roles[role]:
                        chunk |= getattr(self, f"_{ROLES[role].kind}")(role, batch, rows)
            if self.roles.cut == "flags":
                chunk["start"] = self._after_ends(chunk)
            elif self.roles.cut != "ids":
                chunk["start"] = np.ones(len(batch), bool)
            yield batch, chunk
            rows += len(batch)

    def _after_ends(self, chunk: Chunk) -> np.ndarray:
        """(N,) bool, which rows come after an end, and after the final row that may follow it."""
        final = ~chunk["decided"]
        flags = [chunk[name] for name in ("terminated", "truncated") if name in chunk]
        ended = np.any([final, *flags], axis=0)
        after_end = np.append(self._before[0], ended[:-1])
        after_final = np.append(self._before[1], final[:-1])
        self._before = bool(ended[-1]), bool(final[-1])
        return after_end & (~final | after_final)

    # What the columns of a role become, by its kind

    def _id(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        name = self.roles.one(role)
        ids = comparable(batch.column(name))
        text = f"column {name!r} is empty; every row needs its episode's id"
        self.report.rows("empty episode id", ~present(ids), first, text)
        return {"start": self._runs.starts(ids)}

    def _time(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        times, known = numbers(batch.column(self.roles.one(role)))
        return {role: times, "timed": known}

    def _amount(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        cells, known = numbers(batch.column(self.roles.one(role)))
        amounts = np.where(known, cells.astype(np.float64), np.nan)
        return {role: amounts} | ({"paid": ~np.isnan(amounts)} if role == "reward" else {})

    def _flag(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        column = batch.column(self.roles.one(role))
        on, known, wrong = flags(column)
        self._cells("bad flag", wrong, first, column, role, "; a flag is 0 or 1")
        return {role: np.where(known, on, ROLES[role].empty)}

    def _observation(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        features, before = self.reading.features, role.removesuffix("observation")
        columns = (
            self._arrays(batch.column(self.roles.one(role)))
            if features is None
            else self._features(batch, self.roles[role], features)
        )
        names = (f"{before}{name}" for name in ("obs", "fault", "seen"))
        return dict(zip(names, columns, strict=True))

    def _arrays(self, column: pa.Array) -> _Columns:
        """(values, 0 where one is at fault, else −1; whether anything was observed)."""
        column = plain(column)
        if is_array(column.type):
            obs, seen, wrong = arrays(column, self.reading.shape, self.reading.dtype)
        else:  # observations of one number
            obs, seen = numbers(column)[0].astype(self.reading.dtype), present(column)
            wrong = np.zeros(len(column), bool)
        if obs.dtype.kind == "f":
            wrong |= ~is_finite32(obs.reshape(len(obs), -1)).all(axis=1)
        return obs, np.where(wrong | ~seen, 0, -1).astype(np.int32), seen

    def _features(
        self, batch: pa.RecordBatch, names: tuple[str, ...], features: Features
    ) -> _Columns:
        """(values, index of a column at fault or −1, whether anything was observed)."""
        fault = np.full(len(batch), -1, np.int32)
        obs = np.empty((len(batch), len(names)), self.reading.dtype)
        seen = np.zeros(len(batch), bool)
        for index, (name, feature) in enumerate(zip(names, features.columns, strict=True)):
            column = batch.column(name)
            if feature.kind == "category":
                other = OTHER if feature.other else None
                cells, known = codes(column, feature.categories, other)
                empty = cells < 0  # and what is no category
                good = known & ~empty
            else:
                cells, known = numbers(column)
                empty, good = ~known, known & is_finite32(cells)
            obs[:, index] = cells
            if not good.all():
                wrong = ~good if feature.missing == "error" else ~good & known
                fault[wrong & (fault < 0)] = index
                if obs.dtype.kind == "f":
                    obs[empty, index] = np.nan
            seen |= known
        return obs, fault, seen

    def _decision(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        """Ids, −1 where there is none; of the action also which cells are not empty."""
        column, actions = batch.column(self.roles.one(role)), self.reading.actions
        if self.reading.by_id:
            cells, known = numbers(column)
            good = known & (np.floor(cells) == cells) & (cells >= 0) & (cells < len(actions))
            ids = np.where(good, cells, -1).astype(np.int32)
            kind, most = "bad action", len(actions) - 1
            needs = f"; an action is a whole number from 0 to {most}"
            needs += ", and the cell of a final row is empty"
        else:
            ids, known = codes(column, actions)
            kind, needs = "unknown action", f", which is not in the action set ({_listed(actions)})"
            needs += "; correct it or declare it in --actions"
        self._cells(kind, known & (ids < 0), first, column, role, needs)
        return {role: ids, "decided": known} if role == "action" else {role: ids}

    def _mask(self, role: str, batch: pa.RecordBatch, first: int) -> Chunk:
        """(N, actions) legal actions, all where a row says nothing; which rows say something."""
        names, width = self.roles[role], len(self.reading.actions)
        if len(names) == 1 and is_array(batch.column(names[0]).type):
            column = plain(batch.column(names[0]))
            cells, known, odd = arrays(column, (width,), np.dtype(np.float64))
            on = cells == 1
            lengths, _ = numbers(pc.list_value_length(column))
            self.report.rows(
                "mask width",
                known & (lengths != width),
                first,
                lambda row: (
                    f"column {names[0]!r} holds a mask of {lengths[row]} and there are {width} "
                    "actions; masks have one entry per action"
                ),
            )
            on[lengths != width] = True
            wrong = (odd | known & ~(on | (cells == 0)).all(axis=1)) & (lengths == width)
        else:  # one flag column per action; rows with any gap count as empty
            by_action = [flags(batch.column(name)) for name in self._mask_columns[role]]
            on, every, any_wrong = (np.stack(each, axis=1) for each in zip(*by_action, strict=True))
            known, wrong = np.all(every, axis=1), np.any(any_wrong, axis=1)
        self.report.rows("bad mask", wrong, first, "the mask of legal actions is not all 0 and 1")
        on[~known | wrong] = True
        return {role: on, f"{role}_known": known}

    def _cells(
        self, kind: str, wrong: np.ndarray, first: int, column: pa.Array, role: str, needs: str
    ) -> None:
        begin = f"column {self.roles.one(role)!r} holds "
        self.report.rows(kind, wrong, first, lambda row: f"{begin}{shown(column, row)}{needs}")

    def _mask_order(self, role: str) -> list[str]:
        """The mask column of each action: by name where names agree, else in order."""
        names, suffixes = self.roles[role], self.roles.suffixes[role]
        actions = self.reading.actions
        if not suffixes:
            return []
        if set(actions) <= set(suffixes):
            return [names[suffixes.index(action)] for action in actions]
        if len(names) != len(actions):
            self.report.fatal(
                "mask width",
                f"{len(names)} columns of legal actions ({_listed(names)}) and {len(actions)} "
                f"actions ({_listed(actions)}); masks have one column per action",
            )
        return list(names)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def shown(column: pa.Array, row: int) -> str:
    """A cell as a message shows it."""
    try:
        text = repr(column[row].as_py())
    except ValueError:  # times Python has no type for
        text = str(column[row : row + 1].cast(pa.string())[0])
    return text if len(text) <= 40 else f"{text[:40]}..."
