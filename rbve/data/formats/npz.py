"""NumPy archive (.npz): the columns of a dataset, or flat arrays as offline RL saves them.

Written here, it holds the columns of a native store, `length` rows for each episode, and `meta`,
the bytes of a JSON with what is not a number. Archives of others: rbve.data.flat.
"""

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rbve.data import flat
from rbve.data.check import check_values
from rbve.data.dataset import Dataset
from rbve.data.episode import OPTIONAL_COLUMNS
from rbve.data.formats.native import write_parts
from rbve.data.manifest import DTYPES, EPISODE_COLUMNS, ROW_COLUMNS, SCHEMA, read_facts
from rbve.data.npy import AGAIN, Archive, Member, opened, pack
from rbve.data.source import PART_BYTES, Source
from rbve.files import refuse_to_overwrite, replacing

SUFFIX = ".npz"
_META, _META_FACTS = "meta", ("format", "schema", "actions", "features", "provenance")
EPISODES_AT_ONCE = 1 << 16


def recognises(path: Path) -> bool:
    return path.suffix.lower() == SUFFIX and path.is_file()


def write(source: Source, path: Path, overwrite: bool = False) -> None:
    """Columns grow in a store beside the target, which appears when it is complete."""
    with replacing(path, functools.partial(refuse_to_overwrite, path, overwrite)) as partial:
        folder = partial.with_name("columns")
        facts = write_parts(source, folder, path).manifest
        columns = facts.pop("columns")
        meta = {name: facts.get(name) for name in _META_FACTS}
        with open(partial, "wb") as file:
            pack(file, folder, {_META: json.dumps(meta).encode()}, columns)
            file.flush()
            os.fsync(file.fileno())


def read(path: Path) -> Source:
    with opened(path) as archive:
        if not {_META, "action"} <= set(archive.names):
            return flat.read(path)
        facts = _read_meta(archive)
        rows = _open_columns(archive, facts)["action"].rows
    done = 0

    def parts() -> Iterator[Dataset]:
        nonlocal done
        first = 0
        with opened(path) as archive:
            members = _open_columns(archive, facts)
            row_bytes = sum(members[name].row_bytes for name in ROW_COLUMNS if name in members)
            length_of, limit = members.pop("length"), PART_BYTES // row_bytes
            for length in _part_lengths(length_of, rows, limit):
                counts = (len(length), int(length.sum()))
                columns: dict[str, Any] = {
                    name: member.take(counts[name in ROW_COLUMNS])
                    for name, member in members.items()
                }
                if columns["final_observed"].all():
                    columns["final_observed"] = None
                offsets = np.concatenate([[0], np.cumsum(length)])
                part = Dataset(**columns, offsets=offsets, **facts)
                check_values(part, f"{path}: ", first)
                yield part
                first += len(length)
                done += counts[1]

    return Source(parts(), rows, lambda: done)


def _read_meta(archive: Archive) -> dict[str, Any]:
    """Keyword arguments of a Dataset: all that is not a column."""
    member = Member(archive, _META)
    damaged = ValueError(f"{member.where} is not what was written; {AGAIN}")
    if member.dtype.str != "|u1" or member.row_shape:
        raise damaged
    try:
        facts = json.loads(member.take(member.rows).tobytes())
    except (ValueError, RecursionError):
        raise damaged from None
    if not isinstance(facts, dict) or facts.get("format") != "rbve":
        raise damaged
    if (schema := facts.get("schema")) != SCHEMA:
        raise ValueError(
            f"{member.where}: schema {schema!r}, and this version reads schema {SCHEMA}"
        )
    return read_facts(facts, member.where, damaged)


def _open_columns(archive: Archive, facts: dict[str, Any]) -> dict[str, Member]:
    """The columns, which belong together as far as their headers tell."""
    needed = ("obs", "action", "reward", *EPISODE_COLUMNS)
    optional = [name for name in OPTIONAL_COLUMNS if name in archive.names]
    members = {name: Member(archive, name) for name in (*needed, *optional)}
    features = facts["features"]
    for name, member in members.items():
        like = members["action" if name in ROW_COLUMNS else "length"]
        if member.rows != like.rows:
            raise ValueError(
                f"{member.where} has {member.rows} rows, expected {like.rows}; {AGAIN}"
            )
        if name != "obs" and member.dtype.str != DTYPES[name]:
            raise ValueError(f"{member.where} holds {member.dtype}, not {DTYPES[name]}; {AGAIN}")
        obs_shape = member.row_shape if features is None else (len(features.columns),)
        shape = {"legal": (len(facts["actions"]),), "obs": obs_shape}.get(name, ())
        if member.row_shape != shape:
            raise ValueError(
                f"{member.where} has the shape {member.row_shape} a row, expected {shape}; {AGAIN}"
            )
    if not members["obs"].row_bytes:
        raise ValueError(f"{members['obs'].where}: observations hold no number; {AGAIN}")
    if not members["length"].rows:
        raise ValueError(f"{archive.path}: the dataset is empty (no episode)")
    return members


def _part_lengths(member: Member, rows: int, limit: int) -> Iterator[np.ndarray]:
    """Rows of each episode, of as many episodes as make a part; they add up to those there are."""
    damaged = ValueError(f"{member.where}: episode lengths do not fit {rows} rows; {AGAIN}")
    left = rows
    while member.left:
        length = member.take(EPISODES_AT_ONCE)
        if length.min() < 2 or length.max() > left or length.sum() > left:
            raise damaged
        left -= int(length.sum())
        if not member.left and left:
            raise damaged
        ends = np.cumsum(length)
        start = 0
        while start < len(length):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + limit, side="right")))
            yield length[start:stop]
            start = stop
