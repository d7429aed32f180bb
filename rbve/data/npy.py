"""Zips of .npy arrays, as np.savez makes them: streamed by rows, and not trusted.

A file may say anything, so no size it gives is believed beyond what its bytes can hold, and
nothing in it is ever unpickled.
"""

import contextlib
import io
import math
import shutil
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy

from rbve.data.manifest import NUMBERS, PACKED, named

_ENDING = ".npy"
_PIECE = 1 << 20  # bytes inflated at a time
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
AGAIN = "the file is damaged, copy or save it again"


class Archive(NamedTuple):
    """An .npz file, open for reading."""

    path: Path
    zip: zipfile.ZipFile
    size: int  # of the file
    names: list[str]


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Archive]:
    with open(path, "rb") as file:
        with named(str(path), AGAIN):
            archive = zipfile.ZipFile(file)
        names = [name for name in archive.namelist() if name.endswith(_ENDING)]
        size = file.seek(0, 2)
        yield Archive(path, archive, size, [name.removesuffix(_ENDING) for name in names])


class Member:
    """One array of an archive; rows are taken in order."""

    def __init__(self, archive: Archive, name: str) -> None:
        self.name, self.where = name, f"{archive.path}: array {name!r}"
        if name not in archive.names:
            raise ValueError(f"{self.where} is missing; there are {', '.join(archive.names)}")
        entry = archive.zip.getinfo(name + _ENDING)
        # Entries that could not hold what they claim are not even opened.
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(
                f"{self.where} is compressed in a way NumPy does not write; save it again with "
                "np.savez_compressed"
            )
        packed = PACKED if entry.compress_type == zipfile.ZIP_DEFLATED else 1
        if entry.compress_size > archive.size or entry.file_size > packed * entry.compress_size:
            raise ValueError(
                f"{self.where} claims {entry.file_size} bytes in {entry.compress_size} of a file "
                f"of {archive.size}; {AGAIN}"
            )
        with named(self.where, AGAIN):
            self.stream: Any = archive.zip.open(entry)
            shape, column_order, dtype = _header(self.stream)
            begun = self.stream.tell()
        if dtype.newbyteorder("<").str not in NUMBERS:
            kind = "Python objects" if dtype.hasobject else str(dtype)
            raise ValueError(f"{self.where} holds {kind}; it needs numbers or True and False")
        if not shape or min(shape) < 0:
            raise ValueError(f"{self.where} has the shape {shape}; it needs one row per entry")
        size = math.prod(shape) * dtype.itemsize
        if begun + size != entry.file_size:
            raise ValueError(
                f"{self.where} says it has shape {shape} of {dtype}, which is {size} bytes, and "
                f"the file holds {entry.file_size - begun}; {AGAIN}"
            )
        if column_order and len(shape) > 1:
            raise ValueError(
                f"{self.where} is stored by columns, which cannot be read row by row; save it "
                "through np.ascontiguousarray"
            )
        self.dtype, self.rows, self.row_shape = dtype, shape[0], shape[1:]
        self.row_bytes = math.prod(self.row_shape) * dtype.itemsize
        self.left = self.rows

    def take(self, count: int) -> np.ndarray:
        """The next `count` rows, or those that are left."""
        count = min(count, self.left)
        rows = np.empty((count, *self.row_shape), self.dtype)
        view = rows.reshape(-1).view(np.uint8).data
        with named(self.where, AGAIN):
            for start in range(0, len(view), _PIECE):
                piece = view[start : start + _PIECE]
                if missing := len(piece) - self.stream.readinto(piece):
                    raise EOFError(f"it ends {missing} bytes early")
            self.left -= count
            if self.left == 0:
                self.stream.read(1)  # the end, where the checksum is compared
        if self.dtype.kind == "b" and len(view) and np.frombuffer(view, np.uint8).max() > 1:
            raise ValueError(f"{self.where} holds bytes that are neither True nor False; {AGAIN}")
        return rows if self.dtype.isnative else rows.astype(self.dtype.newbyteorder("="))


def _header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = npy.read_magic(stream)
    if version not in _READERS:
        raise ValueError(f"version {version} of the array's header, which holds no numbers")
    try:
        with warnings.catch_warnings():  # Python warns of what stands in a damaged header
            warnings.simplefilter("ignore")
            return _READERS[version](stream)
    except MemoryError:  # Python's parser gave up; the header has 10,000 characters at most
        raise ValueError("the array's header is not one") from None


def pack(file: BinaryIO, folder: Path, texts: dict[str, bytes], columns: dict[str, Any]) -> None:
    """Write an archive of texts and the columns of a native store, which are deleted one by one."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in texts.items():
            _add(archive, name, "|u1", (len(text),), io.BytesIO(text))
        for name, column in columns.items():
            shape = (column["count"], *column["shape"])
            with open(folder / column["file"], "rb") as stream:
                _add(archive, name, column["dtype"], shape, stream)
            (folder / column["file"]).unlink()


def _add(
    archive: zipfile.ZipFile, name: str, dtype: str, shape: tuple[int, ...], data: BinaryIO
) -> None:
    # Equal data gives equal files: the entry's date is the earliest a zip can hold.
    entry = zipfile.ZipInfo(name + _ENDING)
    with archive.open(entry, "w", force_zip64=True) as stream:
        header = {"descr": dtype, "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(stream, header)
        shutil.copyfileobj(data, stream, _PIECE)
