"""File formats, one file each with read() and/or write(). The file's name is the format's name."""

from __future__ import annotations

from pathlib import Path

from rbve.data.dataset import Dataset
from rbve.data.formats import native


def load(path: str | Path, verify: bool = True) -> Dataset:
    """Open a dataset. Columns stay on disk, memory-mapped; `verify` checks every checksum."""
    return native.read(Path(path), verify)
