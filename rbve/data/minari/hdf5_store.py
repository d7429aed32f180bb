"""Episodes of a Minari dataset in one HDF5 file, one group each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rbve.data import hdf5
from rbve.data.images import decode_jpeg
from rbve.data.minari.layout import COLUMNS, FACTS, HDF5_FILE, INFOS, Layout, Raw
from rbve.data.minari.spaces import Leaf


def read_episodes(layout: Layout) -> Iterator[Raw]:
    path = layout.folder / HDF5_FILE
    with hdf5.opened(path) as file:
        layout.check_count(sum(name.startswith("episode_") for name in file.names()), path)
        for index in range(layout.episodes):
            yield _read_episode(file.group(f"episode_{index}", f"{path}: episode {index}"), layout)


def _read_episode(group: hdf5.Group, layout: Layout) -> Raw:
    infos: dict[str, np.ndarray] = {}
    if group.has("infos"):
        inner = group.group("infos")
        for name in map(INFOS.__getitem__, layout.columns):
            if inner.has(name):
                infos[name] = inner.numbers(name)
    facts = {}
    if layout.ours:
        attributes = {name: group.attribute(name) for name in FACTS}
        facts = {name: value for name, value in attributes.items() if value is not None}
    return Raw(
        [_observations(group, leaf) for leaf in layout.leaves],
        {name: group.numbers(name) for name in COLUMNS},
        infos,
        facts,
    )


def _observations(group: hdf5.Group, leaf: Leaf) -> np.ndarray:
    keys = [f"_index_{key}" if isinstance(key, int) else key for key in leaf.path]
    *groups, name = ("observations", *keys)
    for inner in groups:
        group = group.group(inner)
    column = group.column(name)
    packed = column.dtype.kind == "O" or (len(column.shape) == 2 and column.dtype == np.uint8)
    if leaf.image and packed:
        return decode_jpeg(column.blobs(), leaf.shape, column.where)
    return column.numbers()


class EpisodeWriter:
    def __init__(self, folder: Path) -> None:
        self.h5py = h5py = hdf5.require_h5py()
        self.file = h5py.File(folder / HDF5_FILE, "w", track_order=True)
        self.scalar = h5py.h5s.create(h5py.h5s.SCALAR)
        self.types: dict[np.dtype, Any] = {}

    def write(self, index: int, episode: Raw) -> None:
        # h5py's own layer takes more than twice as long, and most episodes are short.
        group = self.h5py.h5g.create(self.file.id, f"episode_{index}".encode())
        steps = len(episode.columns["actions"])
        for name, value in {"id": index, "total_steps": steps, **episode.facts}.items():
            held = np.asarray(value)
            place = self.h5py.h5a.create(group, name.encode(), self.type(held), self.scalar)
            place.write(held)
        for name, values in {"observations": episode.observations[0], **episode.columns}.items():
            self.put(group, name, values)
        infos = self.h5py.h5g.create(group, b"infos")
        for name, values in episode.infos.items():
            self.put(infos, name, values)

    def put(self, group: Any, name: str, values: np.ndarray) -> None:
        h5s = self.h5py.h5s
        values = np.ascontiguousarray(values)
        space = h5s.create_simple(values.shape)
        place = self.h5py.h5d.create(group, name.encode(), self.type(values), space)
        place.write(h5s.ALL, h5s.ALL, values)

    def type(self, values: np.ndarray) -> Any:
        if values.dtype not in self.types:
            self.types[values.dtype] = self.h5py.h5t.py_create(values.dtype, logical=True)
        return self.types[values.dtype]

    def close(self) -> None:
        self.file.close()
