"""Minari dataset: a folder with an Arrow file per episode (Parquet files are read too)."""

from __future__ import annotations

from pathlib import Path

from rbve.data.formats import minari
from rbve.data.minari.layout import data_folder, is_arrow_layout, is_hdf5_layout
from rbve.data.source import Source

read = minari.read


def recognises(path: Path) -> bool:
    folder = data_folder(path)
    return folder is not None and is_arrow_layout(folder) and not is_hdf5_layout(folder)


def write(source: Source, path: Path, overwrite: bool = False) -> None:
    minari.write(source, path, overwrite, data_format="arrow")
