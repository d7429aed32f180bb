"""Episodes of a Minari dataset as they are stored: groups of one HDF5 file, or a folder each.

A folder holds an Arrow file; Parquet files are read too.
"""

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rbve.data import hdf5
from rbve.data._minari.layout import HDF5, METADATA, Layout
from rbve.data._minari.spaces import Leaf
from rbve.data.images import decode_jpeg
from rbve.data.manifest import NUMBERS, PACKED, named
from rbve.data.pages import absurdity
from rbve.files import read_json

COLUMNS = ("actions", "rewards", "terminations", "truncations")  # with one entry per decision
# Facts of an episode Minari has no place for, kept where they are not what they usually are; the
# next action is that of a fragment.
FACTS = ("rbve_next_action", "rbve_complete", "rbve_final_observed", "rbve_episode_return")


class Raw(NamedTuple):
    """An episode as it is stored: T+1 observations, T of the rest."""

    observations: list[np.ndarray]  # one (T+1, *shape) per leaf
    columns: dict[str, np.ndarray]  # COLUMNS
    infos: dict[str, np.ndarray]  # those of INFOS there are, (T+1, ...)
    facts: dict[str, Any]  # those of FACTS there are


_Write = Callable[[int, Raw], None]


def _read_hdf5(layout: Layout) -> Iterator[Raw]:
    path = layout.folder / HDF5
    with hdf5.opened(path) as file:
        layout.check_count(sum(name.startswith("episode_") for name in file.names()), path)
        for index in range(layout.episodes):
            group = file.group(f"episode_{index}", f"{path}: episode {index}")
            infos = group.group("infos") if group.has("infos") else None
            known = [name for name in layout.infos if infos is not None and infos.has(name)]
            facts = {name: group.attribute(name) for name in FACTS if layout.ours}
            yield Raw(
                [_hdf5_observations(group, leaf) for leaf in layout.leaves],
                {name: group.numbers(name) for name in COLUMNS},
                {name: infos.numbers(name) for name in known if infos is not None},
                {name: value for name, value in facts.items() if value is not None},
            )


def _hdf5_observations(group: hdf5.Group, leaf: Leaf) -> np.ndarray:
    keys = [f"_index_{key}" if isinstance(key, int) else key for key in leaf.path]
    *groups, name = ("observations", *keys)
    for inner in groups:
        group = group.group(inner)
    column = group.column(name)
    packed = column.dtype.kind == "O" or (len(column.shape) == 2 and column.dtype == np.uint8)
    if leaf.image and packed:
        return decode_jpeg(column.blobs(), leaf.shape, column.where)
    return column.numbers()


@contextmanager
def _writing_hdf5(folder: Path) -> Iterator[_Write]:
    """h5py's own layer takes more than twice as long, and most episodes are short."""
    h5py = hdf5.require_h5py()
    h5g, h5s, scalar = h5py.h5g, h5py.h5s, h5py.h5s.create(h5py.h5s.SCALAR)
    stored = functools.cache(functools.partial(h5py.h5t.py_create, logical=True))

    def put(group: Any, columns: dict[str, np.ndarray]) -> None:
        for name, values in columns.items():
            space = h5s.create_simple(values.shape)
            place = h5py.h5d.create(group, name.encode(), stored(values.dtype), space)
            place.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(values))

    def write(index: int, episode: Raw) -> None:
        group = h5g.create(file.id, f"episode_{index}".encode())
        steps = len(episode.columns["actions"])
        for name, fact in {"id": index, "total_steps": steps, **episode.facts}.items():
            value = np.asarray(fact)
            h5py.h5a.create(group, name.encode(), stored(value.dtype), scalar).write(value)
        put(group, {"observations": episode.observations[0], **episode.columns})
        put(h5g.create(group, b"infos"), episode.infos)

    with h5py.File(folder / HDF5, "w", track_order=True) as file:
        yield write


def _read_arrow(layout: Layout) -> Iterator[Raw]:
    episodes = sum(entry.name.isdecimal() for entry in layout.folder.iterdir())
    layout.check_count(episodes, layout.folder)
    for index in range(layout.episodes):
        file = _data_file(layout.folder / str(index))
        where = f"{file}: episode {index}"
        with named(where):
            rows = _read_rows(file, layout.data_format)
        try:
            infos: dict[str, pa.Array] = {}
            if "infos" in rows and pa.types.is_struct(rows["infos"].type):
                fields = _members(rows["infos"], where)
                infos = {name: fields[name] for name in layout.infos if name in fields}
            for name in ("observations", *COLUMNS):
                if name not in rows:
                    raise ValueError(f"{where}: lacks {name!r}")
            yield Raw(
                [_arrow_observations(rows["observations"], leaf, where) for leaf in layout.leaves],
                # Minari pads these to the length of the observations.
                {name: _numbers(rows[name], f"{where}: {name!r}")[:-1] for name in COLUMNS},
                {name: _numbers(values, f"{where}: {name!r}") for name, values in infos.items()},
                _read_facts(file.parent / METADATA) if layout.ours else {},
            )
        except UnicodeDecodeError:
            raise ValueError(f"{where}: a name is not UTF-8; the file is damaged") from None


def _data_file(folder: Path) -> Path:
    """As for Minari, any other file of the folder."""
    if folder.is_symlink() or not folder.is_dir():
        raise ValueError(f"{folder}: not a folder of an episode; damaged")
    hidden = ("_", ".", METADATA)
    files = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(hidden)]
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


def _arrow_observations(values: pa.Array, leaf: Leaf, where: str) -> np.ndarray:
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
    rows, kind = len(values), values.type
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


@contextmanager
def _writing_arrow(folder: Path) -> Iterator[_Write]:
    def lists(values: np.ndarray) -> pa.Array:
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values[:1].size)

    def write(index: int, episode: Raw) -> None:
        columns = {"observations": lists(episode.observations[0])}
        for name, values in episode.columns.items():
            columns[name] = pa.array(np.append(values, np.zeros(1, values.dtype)))
        infos = [lists(v) if v.ndim > 1 else pa.array(v) for v in episode.infos.values()]
        if infos:
            columns["infos"] = pa.StructArray.from_arrays(infos, list(episode.infos))
        batch = pa.record_batch(columns)
        place = folder / str(index)
        place.mkdir()
        with pa.ipc.new_file(str(place / "part-0.arrow"), batch.schema) as file:
            file.write_batch(batch)
        facts = {"id": index, "total_steps": len(episode.columns["actions"]), **episode.facts}
        (place / METADATA).write_text(json.dumps(facts), encoding="utf-8")

    yield write


READERS = {"hdf5": _read_hdf5, "arrow": _read_arrow, "parquet": _read_arrow}
WRITERS = {"hdf5": _writing_hdf5, "arrow": _writing_arrow}
