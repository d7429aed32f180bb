"""Minari dataset: a folder with an Arrow file per episode (Parquet files are read too)."""

from pathlib import Path

from rbve.data._minari.layout import HDF5, folder_of
from rbve.data.formats import minari
from rbve.data.source import Source

read = minari.read


def recognises(path: Path) -> bool:
    folder = folder_of(path)
    return folder is not None and not (folder / HDF5).is_file()


def write(source: Source, path: Path, overwrite: bool = False) -> None:
    minari.write(source, path, overwrite, data_format="arrow")
