"""Episodes of a Minari dataset in Arrow files (or Parquet files, to read), one folder each."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rbve.data.images import decode_jpeg
from rbve.data.manifest import NUMBERS, PACKED, named
from rbve.data.minari.layout import COLUMNS, FACTS, INFOS, METADATA, Layout, Raw
from rbve.data.minari.spaces import Leaf
from rbve.data.pages import absurdity
from rbve.files import read_json


def read_episodes(layout: Layout) -> Iterator[Raw]:
    held = sum(entry.name.isdecimal() for entry in layout.folder.iterdir())
    layout.check_count(held, layout.folder)
    for index in range(layout.episodes):
        file = _data_file(layout.folder / str(index))
        where = f"{file}: episode {index}"
        try:
            episode = _read_episode(file, layout, where)
        except UnicodeDecodeError:
            raise ValueError(f"{where}: a name is not UTF-8; the file is damaged") from None
        yield episode


def _read_episode(file: Path, layout: Layout, where: str) -> Raw:
    with named(where):
        rows = _read_rows(file, layout.data_format)
    infos = {}
    if "infos" in rows and pa.types.is_struct(rows["infos"].type):
        fields = _members(rows["infos"], where)
        for name in map(INFOS.__getitem__, layout.columns):
            if name in fields:
                infos[name] = _numbers(fields[name], f"{where}: {name!r}")
    for name in ("observations", *COLUMNS):
        if name not in rows:
            raise ValueError(f"{where}: lacks {name!r}")
    return Raw(
        [_observations(rows["observations"], leaf, where) for leaf in layout.leaves],
        # Minari pads these to the length of the observations.
        {name: _numbers(rows[name], f"{where}: {name!r}")[:-1] for name in COLUMNS},
        infos,
        _read_facts(file.parent / METADATA) if layout.ours else {},
    )


def _data_file(folder: Path) -> Path:
    """As for Minari, any other file of the folder."""
    if folder.is_symlink() or not folder.is_dir():
        raise ValueError(f"{folder}: not a folder of an episode; damaged")
    files = [
        entry
        for entry in sorted(folder.iterdir())
        if not entry.name.startswith(("_", ".", METADATA))
    ]
    if len(files) != 1 or not files[0].is_file():
        raise ValueError(f"{folder}: needs one data file; has {len(files)}")
    return files[0]


def _read_rows(file: Path, data_format: str) -> dict[str, pa.Array]:
    """The columns of one file, checked so that no value lies outside of it."""
    if data_format == "parquet":
        with pq.ParquetFile(file) as parquet:
            meta, size = parquet.metadata, file.stat().st_size
            if meta.num_rows > PACKED * size:
                raise ValueError("says it has more rows than it holds")
            if reason := absurdity(meta, size):
                raise ValueError(reason)
            table = parquet.read()
    else:
        with pa.OSFile(str(file)) as stream, pa.ipc.open_file(stream) as reader:
            table = reader.read_all()
    table.validate(full=True)
    if table.num_rows == 0:
        raise ValueError("no rows")
    return {name: table[name].combine_chunks() for name in table.column_names}


def _read_facts(file: Path) -> dict[str, Any]:
    metadata = read_json(file) if file.is_file() else None
    if not isinstance(metadata, dict):
        raise ValueError(f"{file}: not the metadata of an episode; damaged")
    facts = {name: metadata[name] for name in FACTS if name in metadata}
    for name, value in facts.items():
        largest = sys.float_info.max if type(value) is float else (1 << 63) - 1
        if type(value) not in (bool, int, float) or not abs(value) <= largest:
            raise ValueError(f"{file}: {name!r} is not a number; damaged")
    return facts


def _members(values: pa.Array, where: str) -> dict[str, pa.Array]:
    """Arrays of a struct by name."""
    if not pa.types.is_struct(values.type) or values.null_count:
        raise ValueError(f"{where}: holds {values.type}; it needs a struct without nulls")
    return {field.name: inner for field, inner in zip(values.type, values.flatten(), strict=True)}


def _observations(values: pa.Array, leaf: Leaf, where: str) -> np.ndarray:
    for key in leaf.path:
        inner = _members(values, where)
        if str(key) not in inner:
            raise ValueError(f"{where}: observations lack {leaf.name!r}")
        values = inner[str(key)]
    where = f"{where}: {leaf.name!r}"
    if leaf.image and pa.types.is_binary(values.type):
        if values.null_count:
            raise ValueError(f"{where}: has rows without value")
        return decode_jpeg(values.to_pylist(), leaf.shape, where)
    array = _numbers(values, where)
    if array.size != len(array) * leaf.size:
        raise ValueError(f"{where}: has shape {array.shape[1:]} a row; its space says {leaf.shape}")
    return array.reshape(len(array), *leaf.shape)


def _numbers(values: pa.Array, where: str) -> np.ndarray:
    """(rows,), or (rows, size) of lists of one length."""
    rows = len(values)
    kind = values.type
    if values.null_count:
        raise ValueError(f"{where}: has rows without value")
    lists = pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind)
    with named(where):
        flat = values.flatten() if lists else values
        dtype = np.dtype(flat.type.to_pandas_dtype())
    if dtype.str not in NUMBERS or flat.null_count or (lists and len(flat) % rows):
        raise ValueError(f"{where}: holds {kind}; it needs numbers, the same count in every row")
    if pa.types.is_list(kind) and (np.diff(values.offsets) != len(flat) // rows).any():
        raise ValueError(f"{where}: rows of different lengths")
    with named(where):
        array = flat.to_numpy(zero_copy_only=False)
    return array.reshape(rows, -1) if lists else array


class EpisodeWriter:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, index: int, episode: Raw) -> None:
        columns = {"observations": _fixed_lists(episode.observations[0])}
        for name, values in episode.columns.items():
            columns[name] = pa.array(np.append(values, np.zeros(1, values.dtype)))
        if episode.infos:
            infos = [
                _fixed_lists(values) if values.ndim > 1 else pa.array(values)
                for values in episode.infos.values()
            ]
            columns["infos"] = pa.StructArray.from_arrays(infos, list(episode.infos))
        batch = pa.record_batch(columns)
        folder = self.folder / str(index)
        folder.mkdir()
        with pa.ipc.new_file(str(folder / "part-0.arrow"), batch.schema) as file:
            file.write_batch(batch)
        steps = len(episode.columns["actions"])
        facts = {"id": index, "total_steps": steps, **episode.facts}
        (folder / METADATA).write_text(json.dumps(facts), encoding="utf-8")

    def close(self) -> None:
        pass


def _fixed_lists(values: np.ndarray) -> pa.Array:
    flat = pa.array(values.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, values[:1].size)
