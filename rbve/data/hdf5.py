"""HDF5 files of others, read without trusting them.

A file may say anything: more numbers than it holds, or that they lie in other files. And libhdf5
(2.0 at least) crashes or hangs on damaged values of variable length, so those are read here.
"""

import contextlib
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np

from rbve.data.manifest import NUMBERS, PACKED, named

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_REFERENCE = struct.Struct("<IQI")  # a value of variable length: size, heap's address, index
_HEAP = struct.Struct("<4sB3xQ")  # "GCOL", version, size
_HEAP_ENTRY = struct.Struct("<HHxxxxQ")  # index, references, size; then the bytes, padded to 8


def require_h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise ImportError('HDF5 files need h5py: pip install "rbve[hdf5]"') from None
    return h5py


def is_hdf5(path: Path) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(_SIGNATURE)) == _SIGNATURE


class _Column(NamedTuple):
    """A dataset of a file, not read yet."""

    id: Any
    shape: tuple[int, ...]
    dtype: np.dtype
    where: str
    path: Path
    chunk: tuple[int, ...]  # (0,) where it lies in one piece
    filters: int

    def numbers(self) -> np.ndarray:
        h5s = require_h5py().h5s
        if self.dtype.newbyteorder("<").str not in NUMBERS:
            raise ValueError(f"{self.where}: holds {self.dtype}; it needs numbers")
        with named(self.where):
            values = np.empty(self.shape, self.dtype.newbyteorder("="))
            self.id.read(h5s.ALL, h5s.ALL, values)
        return values

    def blobs(self) -> list[bytes]:
        """Values of variable length, or rows of plain numbers, as bytes."""
        if self.dtype.kind != "O":
            return [row.tobytes() for row in np.atleast_1d(self.numbers())]
        with named(self.where), open(self.path, "rb") as file:
            return list(_values(file, self._references(file), self.path.stat().st_size))

    def _references(self, file: BinaryIO) -> bytes:
        """Those of values of variable length, as they lie in the file."""
        count, size = math.prod(self.shape), _REFERENCE.size
        if self.chunk == (0,):
            file.seek(self.id.get_offset())
            return file.read(count * size)
        if len(self.shape) != 1 or self.filters:
            raise ValueError("values of variable length in compressed chunks")
        references = bytearray(count * size)
        for number in range(self.id.get_num_chunks()):
            chunk = self.id.get_chunk_info(number)
            first = chunk.chunk_offset[0]
            used = min(self.chunk[0], count - first) * size
            file.seek(chunk.byte_offset)
            references[first * size : first * size + used] = file.read(used)
        if len(references) != count * size:
            raise ValueError("chunks that do not fit together")
        return bytes(references)


def _values(file: BinaryIO, references: bytes, file_size: int) -> Iterator[bytes]:
    """Values of variable length, from the heaps in which they lie."""
    heaps: dict[int, dict[int, tuple[int, int]]] = {}  # place and size of entries, by address
    # Heaps do not overlap and no value is used twice, so neither can exceed the file.
    heap_bytes = value_bytes = 0
    for size, address, index in _REFERENCE.iter_unpack(references):
        if size and address not in heaps:
            file.seek(address)
            signature, _, heap_size = _HEAP.unpack(file.read(_HEAP.size))
            heap_bytes += heap_size
            if signature != b"GCOL" or heap_bytes > file_size:
                raise ValueError("no heap where its values should lie")
            heap = file.read(max(heap_size - _HEAP.size, 0))
            entries = heaps[address] = {}
            place = 0
            while place + _HEAP_ENTRY.size <= len(heap):
                number, _, held = _HEAP_ENTRY.unpack_from(heap, place)
                if number == 0:  # free space, always the last entry
                    break
                place += _HEAP_ENTRY.size
                entries[number] = (address + _HEAP.size + place, min(held, len(heap) - place))
                place += held + -held % 8
        place, entry_size = heaps[address].get(index, (0, 0)) if size else (0, 0)
        value_bytes += size
        if size > entry_size or value_bytes > file_size:
            raise ValueError("a value longer than its place")
        file.seek(place)
        yield file.read(size)


class Group(NamedTuple):
    """A group of a file. h5py's lower layer below it takes a third of the time of the upper."""

    id: Any
    where: str  # opens messages
    path: Path
    file_size: int

    def has(self, name: str) -> bool:
        try:
            return bool(self.id.links.exists(name.encode()))
        except Exception:  # what is damaged is not there
            return False

    def names(self) -> list[str]:
        with named(self.where):
            return [name.decode() for name in self.id]

    def member(self, name: str) -> Any:
        """What the file itself holds under the name; links to elsewhere are refused."""
        h5py = require_h5py()
        if not name or "/" in name or name == ".":
            raise ValueError(f"{self.where}: {name!r} cannot be a name in a file")
        with named(f"{self.where}: {name!r}"):
            key = name.encode()
        try:
            link = self.id.links.get_info(key)
        except Exception:  # what is damaged is not there
            raise ValueError(f"{self.where}: lacks {name!r}") from None
        if link.type == h5py.h5l.TYPE_HARD:
            with named(f"{self.where}: {name!r}"):
                return h5py.h5o.open(self.id, key)
        raise ValueError(
            f"{self.where}: {name!r} is a link; copy the data it points to into the file"
        )

    def group(self, name: str, where: str | None = None) -> Self:
        """`where` opens messages about it."""
        member = self.member(name)
        if not isinstance(member, require_h5py().h5g.GroupID):
            raise ValueError(f"{self.where}: {name!r} is not a group; damaged")
        return self._replace(id=member, where=where or self.where)

    def column(self, name: str) -> _Column:
        """A dataset that lies in this file and is no larger than what the file holds."""
        h5d = require_h5py().h5d
        dataset = self.member(name)
        where = f"{self.where}: {name!r}"
        if not isinstance(dataset, h5d.DatasetID):
            raise ValueError(f"{where} is not a dataset; damaged")
        with named(where):
            made = dataset.get_create_plist()
            layout = made.get_layout()
            elsewhere = layout == h5d.VIRTUAL or made.get_external_count() > 0
            shape, dtype = dataset.shape, dataset.dtype
            chunk = made.get_chunk() if layout == h5d.CHUNKED else (0,)
            filters = made.get_nfilters()
            held = min(dataset.get_storage_size(), self.file_size) * (PACKED if filters else 1)
        if elsewhere:
            raise ValueError(f"{where}: its data lies in other files; copy it into this one")
        if shape is None:
            raise ValueError(f"{where} is empty")
        if max(math.prod(shape), math.prod(chunk)) * dtype.itemsize > held:
            raise ValueError(f"{where}: shape {shape} is more than the file holds; damaged")
        return _Column(dataset, shape, dtype, where, self.path, chunk, filters)

    def numbers(self, name: str) -> np.ndarray:
        return self.column(name).numbers()

    def attribute(self, name: str) -> Any:
        """A single number kept as an attribute, or None."""
        h5a = require_h5py().h5a
        where = f"{self.where}: attribute {name!r}"
        with named(where):
            if not h5a.exists(self.id, name.encode()):
                return None
            held = h5a.open(self.id, name.encode())
            shape, dtype = held.shape, held.dtype
        if shape != () or dtype.newbyteorder("<").str not in NUMBERS:
            raise ValueError(f"{where} is not a number; damaged")
        value = np.empty((), dtype)
        with named(where):
            held.read(value)
        return value.item()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Group]:
    h5py = require_h5py()
    with named(str(path)):
        file = h5py.File(path, "r")
    try:
        with named(str(path)):
            root = file["/"].id
        yield Group(root, str(path), path, path.stat().st_size)
    finally:
        with contextlib.suppress(Exception):  # a damaged file may not even close
            file.close()
