"""Minari dataset: a folder whose episodes lie in one HDF5 file.

An episode there has T+1 observations and T of everything else; `action_mask` among its infos says
which actions were legal. What Minari has no place for (executed actions, propensities, names,
fragments, provenance) it keeps for us as infos, attributes and metadata. It stores large frames
as JPEG unless told otherwise; this library writes them exact.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rbve.data.check import check_values
from rbve.data.hdf5 import require_h5py
from rbve.data.manifest import NUMBERS
from rbve.data.minari import arrow_store, hdf5_store
from rbve.data.minari.episodes import from_raw, to_raw
from rbve.data.minari.layout import HDF5_FILE, METADATA, data_folder, describe, open_layout
from rbve.data.source import Source, gather
from rbve.files import refuse_to_replace, replacing, write_json

_STORES: dict[str, Any] = {"hdf5": hdf5_store, "arrow": arrow_store, "parquet": arrow_store}


def recognises(path: Path) -> bool:
    folder = data_folder(path)
    return folder is not None and (folder / HDF5_FILE).is_file()


def read(path: Path) -> Source:
    layout = open_layout(path)
    if layout.data_format not in _STORES:
        raise ValueError(
            f"{layout.metadata}: data format {layout.data_format!r}; known: {', '.join(_STORES)}"
        )
    if layout.data_format == "hdf5":
        require_h5py()
    notes: list[str] = []
    if layout.jpeg:
        notes.append(f"{path}: frames are stored as JPEG, so close to what was seen, not it")
    folder = layout.folder
    episodes = (
        from_raw(raw, layout, f"{folder}: episode {index}", notes)
        for index, raw in enumerate(_STORES[layout.data_format].read_episodes(layout))
    )
    facts = (layout.actions, layout.provenance, layout.episodes, layout.features)
    return replace(gather(episodes, folder, *facts), notes=notes)


def write(source: Source, path: Path, overwrite: bool = False, data_format: str = "hdf5") -> None:
    """Write all parts; the folder appears, or replaces the old one, when it is complete."""
    if data_format == "hdf5":
        require_h5py()
    check = functools.partial(refuse_to_replace, path, overwrite, _holds_dataset, _strangers)
    with replacing(path, check) as partial:
        _write_data(source, path, partial / "data", data_format)


def _write_data(source: Source, path: Path, folder: Path, data_format: str) -> None:
    """`path` is where it will stand, for messages and its name."""
    writer: Any = None
    metadata: dict[str, Any] = {}
    episodes = 0
    try:
        for part in source.parts:
            check_values(part, f"{path}: ", episodes)
            dtype = part.obs.dtype.newbyteorder("<")
            if dtype.str not in NUMBERS:
                raise ValueError(f"{path}: observations are {dtype}; Minari keeps numbers")
            described = describe(part, dtype, path.name, data_format)
            if writer is None:
                folder.mkdir(parents=True)
                metadata = described
                writer = _STORES[data_format].EpisodeWriter(folder)
            elif described["observation_space"] != metadata["observation_space"]:
                raise ValueError(f"{path}: episodes from {episodes} on have other observations")
            for index in range(part.num_episodes):
                writer.write(episodes, to_raw(part.episode(index)))
                episodes += 1
            metadata["total_steps"] += part.num_transitions
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise ValueError(f"{path}: not written, since there is no episode to write")
    size = sum(file.stat().st_size for file in folder.rglob("*"))
    write_json(
        folder / METADATA,
        {**metadata, "total_episodes": episodes, "dataset_size": round(size / 1e6, 1)},
    )


def _holds_dataset(path: Path) -> bool:
    return data_folder(path) == path / "data"


def _strangers(path: Path) -> Iterator[Path]:
    """What is no file of a Minari dataset."""
    for entry in (*path.iterdir(), *(path / "data").iterdir()):
        episode = entry.parent != path and entry.name.isdecimal()
        if not episode and entry.name not in ("data", METADATA, HDF5_FILE):
            yield entry
