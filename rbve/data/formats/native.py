"""The native store: a folder with a manifest and one memory-mappable file per column.

Episodes are appended to the column files first and counted in the manifest afterwards, by an
atomic rename. So a writer killed at any moment leaves a store that holds every episode counted,
and bytes behind them that no reader looks at.
"""

import functools
import math
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rbve import files
from rbve.data import manifest as manifests
from rbve.data.check import check_values
from rbve.data.dataset import Dataset
from rbve.data.episode import NO_ACTION, OPTIONAL_COLUMNS, Episode, action_names
from rbve.data.features import Features
from rbve.data.manifest import DTYPES, EPISODE_COLUMNS, MANIFEST, NUMBERS, ROW_COLUMNS, row_bytes
from rbve.data.source import Source, on_cores, parts_of
from rbve.files import read_json, refuse_to_replace, replacing, write_json

_CHUNK = 1 << 24  # bytes checked at a time


class StoreWriter:
    """Appends whole episodes to a new store. After every append() the store is readable."""

    def __init__(
        self,
        path: str | Path,
        actions: Sequence[str] | int,
        provenance: dict[str, Any] | None = None,
        overwrite: bool = False,
        features: Features | None = None,
        where: Path | None = None,  # opens messages, where it is another than the path
        grows: bool = True,  # each append is on disk when it returns; else all at finish()
    ) -> None:
        self.path = Path(path)
        self.where, self.grows = where or self.path, grows
        manifests.check_provenance(provenance or {}, f"{self.where}")
        refuse_to_replace(self.path, overwrite, _holds_dataset, _strangers)
        if _holds_dataset(self.path):
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.manifest: dict[str, Any] = {
            "format": "rbve",
            "schema": manifests.SCHEMA,
            "finished": False,
            "episodes": 0,
            "rows": 0,
            "actions": list(action_names(actions)),
            "columns": {},
            "provenance": provenance or {},
            **({} if features is None else {"features": features.to_json()}),
        }
        write_json(self.path / MANIFEST, self.manifest)

    def append(self, episodes: Sequence[Episode]) -> None:
        if episodes:
            place = {"where": f"{self.where}: ", "first": self.manifest["episodes"]}
            actions = self.manifest["actions"]
            self.extend(Dataset.from_episodes(episodes, actions, checked=False, **place))

    def extend(self, part: Dataset) -> None:
        """Append all episodes of a Dataset."""
        held = self.manifest["episodes"]
        check_values(part, f"{self.where}: ", held)
        columns = self.manifest["columns"]
        added = columns_of(part)
        if columns and set(added) != set(columns):
            raise ValueError(
                f"{self.where}: episodes from {held} on have the columns {', '.join(added)}; those "
                f"before have {', '.join(columns)}"
            )
        if columns and list(part.obs_shape) != columns["obs"]["shape"]:
            raise ValueError(
                f"{self.where}: episode {held}: observations have shape {part.obs_shape}, those of "
                f"the first episode {tuple(columns['obs']['shape'])}"
            )
        obs_dtype = columns["obs"]["dtype"] if columns else _stored_dtype(added["obs"])
        if obs_dtype not in NUMBERS or not np.can_cast(added["obs"].dtype, obs_dtype):
            raise ValueError(
                f"{self.where}: episodes from {held} on have observations of "
                f"{added['obs'].dtype}, which the file's {obs_dtype} cannot hold"
            )
        manifest = {
            **self.manifest,
            "episodes": held + part.num_episodes,
            "rows": self.manifest["rows"] + len(added["action"]),
            "columns": {name: self._append_column(name, values) for name, values in added.items()},
        }
        if self.grows:
            write_json(self.path / MANIFEST, manifest)
        self.manifest = manifest

    def _append_column(self, name: str, values: np.ndarray) -> dict[str, Any]:
        known = self.manifest["columns"].get(name)
        column = known or {
            "file": f"{name}.bin",
            "dtype": _stored_dtype(values),
            "shape": list(values.shape[1:]),
            "count": 0,
            "crc32": 0,
        }
        data = np.ascontiguousarray(values, dtype=column["dtype"]).reshape(-1).view(np.uint8).data
        with open(self.path / column["file"], "r+b" if known else "wb") as file:
            # Bytes of an append that was never counted are overwritten.
            file.seek(column["count"] * row_bytes(column))
            file.truncate()
            file.write(data)
            if self.grows:
                file.flush()
                os.fsync(file.fileno())
        return {
            **column,
            "count": column["count"] + len(values),
            "crc32": zlib.crc32(data, column["crc32"]),
        }

    def adopt(self, later: "StoreWriter") -> None:
        """Append what another has written of the same source, and empty it."""
        for name, column in self.manifest["columns"].items():
            added = later.manifest["columns"][name]
            source = later.path / added["file"]
            with open(self.path / column["file"], "ab") as file, open(source, "rb") as data:
                while block := data.read(_CHUNK):
                    file.write(block)
                    column["crc32"] = zlib.crc32(block, column["crc32"])
            column["count"] += added["count"]
            source.unlink()
        for count in ("episodes", "rows"):
            self.manifest[count] += later.manifest[count]

    def finish(self) -> None:
        """Say that the recording went to its planned end."""
        for column in () if self.grows else self.manifest["columns"].values():
            with open(self.path / column["file"], "rb") as file:
                os.fsync(file.fileno())
        self.manifest["finished"] = True
        write_json(self.path / MANIFEST, self.manifest)


def columns_of(part: Dataset) -> dict[str, np.ndarray]:
    """As they are stored; observations in their own type."""
    made = {"length": np.diff(part.offsets), "final_observed": part.finals_known}
    names = ("obs", "action", "reward", *EPISODE_COLUMNS, *OPTIONAL_COLUMNS)
    columns = {name: made[name] if name in made else getattr(part, name) for name in names}
    return {
        name: np.asarray(column, DTYPES.get(name))
        for name, column in columns.items()
        if column is not None
    }


def _stored_dtype(values: np.ndarray) -> str:
    return values.dtype.newbyteorder("<").str


def _strangers(folder: Path, beside: str = MANIFEST) -> Iterator[Path]:
    """What is no file of a store or `beside` it, nor left over by a writer that was killed."""
    ours = {MANIFEST, beside, *(f"{name}.bin" for name in (*ROW_COLUMNS, *EPISODE_COLUMNS))}
    for entry in sorted(folder.iterdir()):
        left_over = entry.name.startswith((f".{MANIFEST}.", f".{beside}."))
        if not entry.is_file() or not (entry.name in ours or left_over):
            yield entry


def _holds_dataset(path: Path) -> bool:
    try:
        manifest = read_json(path / MANIFEST)
    except (ValueError, OSError):
        return False
    return isinstance(manifest, dict) and manifest.get("format") == "rbve"


@contextmanager
def recording(
    path: Path,
    actions: Sequence[str] | int,
    provenance: dict[str, Any],
    overwrite: bool,
    beside: str,
) -> Iterator[StoreWriter]:
    """A StoreWriter of a store that grows while others read it, locked against other writers.

    A dataset that is there already stays until the new one is whole. `beside` names a file that
    lies among the columns and is replaced with them.
    """
    others = functools.partial(_strangers, beside=beside)
    check = functools.partial(refuse_to_replace, path, overwrite, _holds_dataset, others)
    files.restore(path)
    if path.is_dir() and any(path.iterdir()):
        with replacing(path, check) as partial:
            yield StoreWriter(partial, actions, provenance)
    else:
        target = files.followed(path) if path.is_symlink() else path
        with files.locked(path):
            yield StoreWriter(target, actions, provenance)


def write(source: Source, path: Path, overwrite: bool = False) -> None:
    """Write all parts; the folder appears, or replaces the old one, when it is complete."""
    check = functools.partial(refuse_to_replace, path, overwrite, _holds_dataset, _strangers)
    with replacing(path, check) as partial:
        pieces = source.pieces()
        if len(pieces) > 1:
            writer = _write_pieces(pieces, partial, path)
        else:
            writer = write_parts(source, partial, path)
        writer.finish()


def _write_pieces(pieces: Sequence[Source], folder: Path, where: Path) -> StoreWriter:
    """Each in a store of its own, as many at a time as there are cores; then one after another."""
    scratch = folder.with_name(f".{folder.name}.pieces")

    def write_piece(number: int) -> StoreWriter | None:
        parts = pieces[number].parts
        if (first := next(parts, None)) is None:
            return None
        piece = replace(pieces[number], parts=chain([first], parts))
        return write_parts(piece, scratch / str(number), where)

    written = [each for each in on_cores(write_piece, range(len(pieces))) if each is not None]
    if not written:
        raise ValueError(f"{where}: not written, since there is no episode to write")
    whole, *later = written
    os.replace(whole.path, folder)
    whole.path = folder
    for each in later:
        whole.adopt(each)
    shutil.rmtree(scratch)
    return whole


def write_parts(source: Source, folder: Path, where: Path) -> StoreWriter:
    """All parts in a new store that is not finished; `where` opens messages."""
    writer = None
    for part in source.parts:
        if writer is None:
            facts = (part.actions, part.provenance)
            writer = StoreWriter(folder, *facts, False, part.features, where, grows=False)
        writer.extend(part)
    if writer is None:
        raise ValueError(f"{where}: not written, since there is no episode to write")
    return writer


def recognises(path: Path) -> bool:
    return path.is_dir() and (path / MANIFEST).is_file()


def read(path: Path) -> Source:
    return parts_of(open_store(path))


def open_store(path: Path, verify: bool | int = True) -> Dataset:
    """Memory-mapped; `verify`: all checksums, none, or those of columns up to so many bytes."""
    manifest = manifests.read_manifest(path)
    checked_up_to = math.inf if verify is True else int(verify)
    columns: dict[str, Any] = {
        name: _open_column(path, name, column, manifest, checked_up_to)
        for name, column in manifest["columns"].items()
    }
    columns |= {name: np.asarray(columns[name]) for name in EPISODE_COLUMNS if name in columns}
    length = columns.pop("length")
    rows = manifest["rows"]
    if (length < 2).any() or (length > rows).any() or length.sum() != rows:
        raise ValueError(f"{path}: episode lengths do not add up to {rows} rows")
    if verify:
        known, held = len(manifest["actions"]), columns["action"]
        for action in (int(held.min()), int(held.max())):
            if not NO_ACTION <= action < known:
                raise ValueError(
                    f"{path / MANIFEST}: names {known} actions and the data holds action {action}; "
                    "damaged"
                )
    if columns.get("final_observed", np.True_).all():
        columns["final_observed"] = None
    features = None
    if "features" in manifest:
        features = Features.from_json(manifest["features"], str(path / MANIFEST))
        if (len(features.columns),) != columns["obs"].shape[1:]:
            raise ValueError(
                f"{path / MANIFEST}: names {len(features.columns)} features, and observations have "
                f"the shape {columns['obs'].shape[1:]}; damaged"
            )
    return Dataset(
        offsets=np.concatenate([[0], np.cumsum(length)]),
        features=features,
        actions=tuple(manifest["actions"]),
        provenance={**manifest["provenance"], "finished": manifest["finished"]},
        **columns,
    )


def _open_column(
    path: Path, name: str, column: dict[str, Any], manifest: dict[str, Any], checked_up_to: float
) -> np.ndarray:
    file = path / column["file"]
    count = manifest["rows" if name in ROW_COLUMNS else "episodes"]
    if column["count"] != count:
        raise ValueError(f"{file}: {column['count']} entries, expected {count}; damaged")
    size = count * row_bytes(column)
    if not file.is_file() or file.stat().st_size < size:
        raise ValueError(f"{file}: missing or shorter than {size} bytes; the dataset is damaged")
    values = np.memmap(file, np.dtype(column["dtype"]), "r", shape=(count, *column["shape"]))
    if size <= checked_up_to:
        crc, left = 0, size
        with open(file, "rb") as stream:
            while left and (data := stream.read(min(_CHUNK, left))):
                crc = zlib.crc32(data, crc)
                left -= len(data)
        if crc != column["crc32"]:
            raise ValueError(
                f"{file}: checksum does not match; the file changed since it was written"
            )
    return values
