"""Copies of stores on nodes that do not share the driver's files, known by their content.

~/.cache/rbve/stores/MARK, MARK the hash of the manifest, which holds the checksums of all columns.
A copy is made once for each node; delete it when you like.
"""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from rbve import backend
from rbve.data.formats import native
from rbve.data.manifest import EPISODE_COLUMNS, MANIFEST, ROW_COLUMNS, read_manifest, row_bytes
from rbve.files import replacing

PIECE = 16 << 20  # bytes sent at a time
_NAMES = {MANIFEST, *(f"{name}.bin" for name in (*ROW_COLUMNS, *EPISODE_COLUMNS))}


def mark_of(path: Path) -> str:
    """Of a native store; empty where there is none."""
    file = path / MANIFEST
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.is_file() else ""


def place_of(mark: str) -> Path:
    cache = backend.cache_folder()
    if cache is None:
        raise ValueError("no folder to copy data to; set XDG_CACHE_HOME to one that is writable")
    return cache / "stores" / mark


def located(path: str, mark: str) -> str | None:
    """Where a store lies here: under its path, or as a copy; None = nowhere."""
    if not mark or mark_of(Path(path)) == mark:
        return path
    copy = place_of(mark)
    return str(copy) if mark_of(copy) == mark else None


def pieces(path: Path) -> Iterator[tuple[str, bytes]]:
    """(file, bytes) of a store: of every column what its manifest counts."""
    yield MANIFEST, (path / MANIFEST).read_bytes()
    for column in read_manifest(path)["columns"].values():
        left = column["count"] * row_bytes(column)
        with open(path / column["file"], "rb") as file:
            while left and (piece := file.read(min(PIECE, left))):
                left -= len(piece)
                yield column["file"], piece


class Receiver:
    """Writes a copy on its node; it appears whole, after every checksum was compared."""

    def __init__(self, mark: str) -> None:
        self._mark, self._stack = mark, ExitStack()
        self._folder: Path = self._stack.enter_context(replacing(place_of(mark)))
        self._folder.mkdir()

    def write(self, name: str, piece: bytes) -> None:
        if name not in _NAMES:
            raise ValueError(f"{name!r}: not a file of a store")
        with open(self._folder / name, "ab") as file:
            file.write(piece)

    def close(self) -> None:
        """Leave no copy."""
        self._stack.close()

    def finish(self) -> None:
        with self._stack:
            if mark_of(self._folder) != self._mark:
                raise ValueError(
                    f"{place_of(self._mark)}: another manifest came than was announced"
                )
            native.open_store(self._folder)
