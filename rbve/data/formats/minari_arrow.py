"""Minari dataset: a folder with an Arrow file per episode (Parquet files are read too)."""

from __future__ import annotations

from pathlib import Path

from rbve.data.formats import minari
from rbve.data.minari.layout import HDF5_FILE, data_folder
from rbve.data.source import Source

read = minari.read


def recognises(path: Path) -> bool:
    folder = data_folder(path)
    return folder is not None and not (folder / HDF5_FILE).is_file()


def write(source: Source, path: Path, overwrite: bool = False) -> None:
    minari.write(source, path, overwrite, data_format="arrow")
