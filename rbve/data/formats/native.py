"""The native store: a folder with a manifest and one memory-mappable file per column.

Episodes are appended to the column files first and counted in the manifest afterwards, by an
atomic rename. So a writer killed at any moment leaves a store that holds every episode counted,
and bytes behind them that no reader looks at.
"""

from __future__ import annotations

import math
import os
import shutil
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rbve.data.dataset import (
    OPTIONAL_COLUMNS,
    Dataset,
    Episode,
    action_names,
    check_episode,
    optional_columns,
    return_of,
)
from rbve.files import read_json, write_json

SCHEMA = 1
MANIFEST = "manifest.json"
ROW_COLUMNS = ("obs", "action", "reward", *OPTIONAL_COLUMNS)
EPISODE_COLUMNS = ("length", "terminated", "complete", "episode_return")
# How columns lie on disk; observations may be any of NUMBERS.
NUMBERS = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
DTYPES = {
    "action": "<i4",
    "reward": "<f4",
    "executed": "<i4",
    "legal": "|b1",
    "propensity": "<f4",
    "length": "<i8",
    "terminated": "|b1",
    "complete": "|b1",
    "episode_return": "<f8",
}
FIELDS = {
    "finished": bool,
    "episodes": int,
    "rows": int,
    "actions": list,
    "columns": dict,
    "provenance": dict,
}
COLUMN_FIELDS = {"file": str, "dtype": str, "shape": list, "count": int, "crc32": int}
CHUNK = 1 << 24  # bytes checked at a time


class Writer:
    """Appends whole episodes to a new store. After every append() the store is readable."""

    def __init__(
        self,
        path: str | Path,
        actions: Sequence[str] | int,
        provenance: dict[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        self.path = Path(path)
        refuse_to_overwrite(self.path, overwrite)
        if self.path.exists():
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True)
        self.manifest: dict[str, Any] = {
            "format": "rbve",
            "schema": SCHEMA,
            "finished": False,
            "episodes": 0,
            "rows": 0,
            "actions": list(action_names(actions)),
            "columns": {},
            "provenance": provenance or {},
        }
        write_json(self.path / MANIFEST, self.manifest)

    def append(self, episodes: Sequence[Episode]) -> None:
        if not episodes:
            return
        held = self.manifest["episodes"]
        columns = self.manifest["columns"]
        shape = columns["obs"]["shape"] if columns else list(episodes[0].obs.shape[1:])
        for index, episode in enumerate(episodes):
            check_episode(
                episode,
                len(self.manifest["actions"]),
                f"{self.path}: episode {held + index}",
                tuple(shape),
            )
        added = gather(episodes) | optional_columns(episodes, held, f"{self.path}: ")
        if columns and set(added) != set(columns):
            raise ValueError(
                f"{self.path}: episodes from {held} on have the columns {', '.join(added)}; those "
                f"before have {', '.join(columns)}"
            )
        obs_dtype = columns["obs"]["dtype"] if columns else stored_dtype(added["obs"])
        if obs_dtype not in NUMBERS or not np.can_cast(added["obs"].dtype, obs_dtype):
            raise ValueError(
                f"{self.path}: episodes from {held} on have observations of {added['obs'].dtype}, "
                f"which the store's {obs_dtype} cannot hold"
            )
        manifest = {
            **self.manifest,
            "episodes": held + len(episodes),
            "rows": self.manifest["rows"] + len(added["action"]),
            "columns": {name: self._append_column(name, values) for name, values in added.items()},
        }
        write_json(self.path / MANIFEST, manifest)
        self.manifest = manifest

    def _append_column(self, name: str, values: np.ndarray) -> dict[str, Any]:
        known = self.manifest["columns"].get(name)
        column = known or {
            "file": f"{name}.bin",
            "dtype": stored_dtype(values),
            "shape": list(values.shape[1:]),
            "count": 0,
            "crc32": 0,
        }
        data = np.ascontiguousarray(values, dtype=column["dtype"]).tobytes()
        with open(self.path / column["file"], "r+b" if known else "wb") as file:
            # Bytes of an append that was never counted are overwritten.
            file.seek(column["count"] * row_bytes(column))
            file.truncate()
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return {
            **column,
            "count": column["count"] + len(values),
            "crc32": zlib.crc32(data, column["crc32"]),
        }

    def finish(self) -> None:
        """Say that the recording went to its planned end."""
        self.manifest["finished"] = True
        write_json(self.path / MANIFEST, self.manifest)


def gather(episodes: Sequence[Episode]) -> dict[str, np.ndarray]:
    return {
        "obs": np.concatenate([e.obs for e in episodes]),
        "action": np.concatenate([e.action for e in episodes]).astype(np.int32),
        "reward": np.concatenate([e.reward for e in episodes]).astype(np.float32),
        "length": np.array([len(e.action) for e in episodes], np.int64),
        "terminated": np.array([e.terminated for e in episodes], np.bool_),
        "complete": np.array([e.complete for e in episodes], np.bool_),
        "episode_return": np.array([return_of(e) for e in episodes], np.float64),
    }


def stored_dtype(values: np.ndarray) -> str:
    return values.dtype.newbyteorder("<").str


def refuse_to_overwrite(path: Path, overwrite: bool) -> None:
    """Only a folder with the files of a dataset and nothing else may be replaced."""
    if not path.exists():
        return
    if not path.is_dir():
        raise ValueError(f"{path}: exists and is not a folder; choose another path")
    if not any(path.iterdir()):
        return
    if not holds_dataset(path):
        raise ValueError(f"{path}: the folder is not empty and holds no dataset; choose another")
    if not overwrite:
        raise ValueError(f"{path}: already holds a dataset; pass --overwrite or choose another")
    ours = {MANIFEST, *(f"{name}.bin" for name in (*ROW_COLUMNS, *EPISODE_COLUMNS))}
    for entry in sorted(path.iterdir()):
        left_over = entry.name.startswith(f".{MANIFEST}.")  # by a writer that was killed
        if not entry.is_file() or not (entry.name in ours or left_over):
            raise ValueError(f"{entry}: not a file of the dataset around it; move it away first")


def holds_dataset(path: Path) -> bool:
    try:
        manifest = read_json(path / MANIFEST)
    except (ValueError, OSError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == "rbve"


def write(
    dataset: Dataset,
    path: str | Path,
    overwrite: bool = False,
    episodes_at_once: int = 1000,
) -> None:
    """Write a whole dataset; the folder appears, or replaces the old one, when it is complete."""
    target = Path(path)
    refuse_to_overwrite(target, overwrite)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        writer = Writer(partial, dataset.actions, dataset.provenance)
        for group in groups(range(dataset.num_episodes), episodes_at_once):
            writer.append([dataset.episode(index) for index in group])
        writer.finish()
        if target.exists():
            shutil.rmtree(target)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def groups(items: range, size: int) -> Iterable[range]:
    return (items[start : start + size] for start in range(0, len(items), size))


def row_bytes(column: dict[str, Any]) -> int:
    return math.prod(column["shape"]) * np.dtype(column["dtype"]).itemsize


def read(path: Path, verify: bool = True) -> Dataset:
    manifest = read_manifest(path)
    columns: dict[str, Any] = {
        name: open_column(path, name, column, manifest, verify)
        for name, column in manifest["columns"].items()
    }
    columns |= {name: np.asarray(columns[name]) for name in EPISODE_COLUMNS}
    length = columns.pop("length")
    if (length < 2).any() or length.sum() != manifest["rows"]:
        raise ValueError(f"{path}: episode lengths do not add up to {manifest['rows']} rows")
    if verify and columns["action"].max() >= len(manifest["actions"]):
        raise ValueError(
            f"{path / MANIFEST}: names {len(manifest['actions'])} actions and the data holds "
            f"action {columns['action'].max()}; damaged"
        )
    return Dataset(
        offsets=np.concatenate([[0], np.cumsum(length)]),
        actions=tuple(manifest["actions"]),
        provenance={**manifest["provenance"], "finished": manifest["finished"]},
        **columns,
    )


def fingerprint(path: Path) -> str:
    """Changes whenever the data does, without reading it."""
    columns = read_manifest(path)["columns"]
    facts = {name: (column["count"], column["crc32"]) for name, column in columns.items()}
    return f"{zlib.crc32(repr(sorted(facts.items())).encode()):08x}"


def read_manifest(path: Path) -> dict[str, Any]:
    file = path / MANIFEST
    if not path.exists():
        raise ValueError(f"{path}: no such dataset; make one with `rbve record ENV --out PATH`")
    if not file.is_file():
        raise ValueError(f"{path}: no {MANIFEST}, so not an rbve dataset (or nothing was recorded)")
    manifest = read_json(file)
    if not isinstance(manifest, dict) or manifest.get("format") != "rbve":
        raise ValueError(f"{file}: not the manifest of an rbve dataset")
    if manifest.get("schema") != SCHEMA:
        raise ValueError(
            f"{file}: schema {manifest.get('schema')}, and this version reads schema {SCHEMA}"
        )
    check_fields(manifest, FIELDS, f"{file}")
    if manifest["episodes"] <= 0 or manifest["rows"] <= 0:
        raise ValueError(f"{path}: the dataset is empty (no complete episode); record again")
    names = manifest["actions"]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise ValueError(f"{file}: 'actions' must list different names; damaged")
    for name in ("obs", "action", "reward", *EPISODE_COLUMNS):
        if name not in manifest["columns"]:
            raise ValueError(f"{file}: lists no column {name!r}; damaged")
    for name, column in manifest["columns"].items():
        check_column(name, column, len(names), f"{file}: column {name!r}")
    return manifest


def check_fields(content: Any, fields: dict[str, type], where: str) -> None:
    for name, kind in fields.items():
        if not isinstance(content, dict) or type(content.get(name)) is not kind:
            raise ValueError(f"{where}: {name!r} is missing or no {kind.__name__}; damaged")


def check_column(name: str, column: Any, num_actions: int, where: str) -> None:
    check_fields(column, COLUMN_FIELDS, where)
    if name not in (*ROW_COLUMNS, *EPISODE_COLUMNS):
        raise ValueError(f"{where}: this version knows no such column")
    if column["file"] != f"{name}.bin":
        raise ValueError(f"{where}: its file must be '{name}.bin', not {column['file']!r}")
    if column["dtype"] not in (NUMBERS if name == "obs" else (DTYPES[name],)):
        raise ValueError(f"{where}: cannot hold dtype {column['dtype']!r}; damaged")
    sizes = column["shape"]
    expected = {"obs": sizes, "legal": [num_actions]}.get(name, [])
    if sizes != expected or not all(type(size) is int and size > 0 for size in sizes):
        raise ValueError(f"{where}: cannot have the shape {sizes} a row; damaged")


def open_column(
    path: Path, name: str, column: dict[str, Any], manifest: dict[str, Any], verify: bool
) -> np.ndarray:
    file = path / column["file"]
    count = manifest["rows" if name in ROW_COLUMNS else "episodes"]
    if column["count"] != count:
        raise ValueError(f"{file}: {column['count']} entries, expected {count}; damaged")
    size = count * row_bytes(column)
    if not file.is_file() or file.stat().st_size < size:
        raise ValueError(f"{file}: missing or shorter than {size} bytes; the dataset is damaged")
    values = np.memmap(file, np.dtype(column["dtype"]), "r", shape=(count, *column["shape"]))
    if verify and checksum(file, size) != column["crc32"]:
        raise ValueError(f"{file}: checksum does not match; the file changed since it was written")
    return values


def checksum(file: Path, size: int) -> int:
    crc = 0
    with open(file, "rb") as stream:
        while size and (data := stream.read(min(CHUNK, size))):
            crc = zlib.crc32(data, crc)
            size -= len(data)
    return crc
