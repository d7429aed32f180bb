"""Columns that say which actions are legal: one of arrays or of names, or one for each action."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rbve.runtime.arrow import BadRow
from rbve.runtime.inputs import action_id

_SEPARATORS = ("|", ";", ",")
_FLAGS = {"1": True, "true": True, "0": False, "false": False}


def mask_columns(legal: str | None, names: Sequence[str], actions: Sequence[str]) -> list[str]:
    """The columns of the masks: one, or one for each action, in their order.

    Raises:
        ValueError: They are not there.
    """
    if legal is None:
        return []
    if not legal.endswith("*"):
        if legal not in names:
            raise ValueError(f"no column {legal!r} of legal actions; columns: {_listed(names)}")
        return [legal]
    prefix = legal[:-1]
    columns = [prefix + action for action in actions]
    if lacking := [name for name in columns if name not in names]:
        raise ValueError(f"no column {lacking[0]!r}; {legal!r} needs one for each action")
    return columns


def masks(
    batch: pa.RecordBatch, columns: Sequence[str], actions: Sequence[str]
) -> tuple[np.ndarray | None, list[BadRow]]:
    """(N, A) bool, None without columns; and the rows that do not say it."""
    if not columns:
        return None, []
    if len(columns) == 1 and len(actions) > 1:
        column = batch.column(columns[0])
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            made, why = _arrays(column, actions)
        elif pa.types.is_fixed_size_list(column.type):
            made, why = _arrays(column.cast(pa.list_(column.type.value_type)), actions)
        else:
            made, why = _names(column, actions)
    else:
        flags = [_flags(batch.column(name), name) for name in columns]
        made = np.stack([each for each, _ in flags], axis=1)
        why = {row: words for _, wrong in flags for row, words in wrong.items()}
    for row in np.flatnonzero(~made.any(axis=1)):
        why.setdefault(int(row), "no action is legal; a decision needs at least one")
    made[~made.any(axis=1)] = True  # of rows that are bad
    return made, [BadRow(row, why[row]) for row in sorted(why)]


def _arrays(column: Any, actions: Sequence[str]) -> tuple[np.ndarray, dict[int, str]]:
    made = np.zeros((len(column), len(actions)), np.bool_)
    lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)
    good = lengths == len(actions)
    held = pc.list_flatten(column.filter(pa.array(good)))
    values = pc.fill_null(held.cast(pa.float64()), 0.5).to_numpy(zero_copy_only=False)
    values = values.reshape(-1, len(actions))
    made[good] = values == 1
    why = {
        int(row): f"a mask of {max(int(lengths[row]), 0)} entries for {len(actions)} actions"
        for row in np.flatnonzero(~good)
    }
    odd = np.flatnonzero(good)[~np.isin(values, (0, 1)).all(axis=1)]
    return made, why | {int(row): "a mask of legal actions is not all 0 and 1" for row in odd}


def _names(column: Any, actions: Sequence[str]) -> tuple[np.ndarray, dict[int, str]]:
    """Such as "wait|treat"; every different text is read once."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = [*encoded.dictionary.to_pylist(), None]
    which = pc.fill_null(encoded.indices.cast(pa.int64()), len(texts) - 1)
    place = which.to_numpy(zero_copy_only=False)
    table, wrong = np.zeros((len(texts), len(actions)), np.bool_), dict[int, str]()
    for index, text in enumerate(texts):
        try:
            table[index, _ids(text, actions)] = True
        except ValueError as error:
            wrong[index] = str(error)
    rows = np.flatnonzero(np.isin(place, list(wrong)))
    return table[place], {int(row): wrong[int(place[row])] for row in rows}


def _ids(text: Any, actions: Sequence[str]) -> list[int]:
    words = [] if text is None else [str(text)]
    for sign in _SEPARATORS:
        if len(words) == 1 and words[0] not in actions:
            words = words[0].split(sign)
    return [action_id(word.strip(), actions) for word in words]


def _flags(column: Any, name: str) -> tuple[np.ndarray, dict[int, str]]:
    values = column.to_pylist() if not pa.types.is_boolean(column.type) else None
    if values is None:
        return pc.fill_null(column, False).to_numpy(zero_copy_only=False), {}
    read = [_FLAGS.get(str(value).strip().lower().removesuffix(".0")) for value in values]
    wrong = {
        row: f"column {name!r} says which actions are legal, by 0 and 1; got {values[row]!r}"
        for row, flag in enumerate(read)
        if flag is None
    }
    return np.array([bool(flag) for flag in read]), wrong


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
