"""TFRecord shards of tf.train.Example, without TensorFlow.

A shard is a gzip stream of records: length (8 bytes, little-endian), its masked crc32c (4), one
tf.train.Example as protobuf, its masked crc32c (4). No number in a file is trusted before its
checksum is, and none decides how much memory is taken.
"""

import gzip
import itertools
import struct
import zlib
from collections.abc import Callable, Container, Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MAX_RECORD = 1 << 28  # bytes; the longest Atari episode, its frames uncompressed, has 194 MB
_MAX_ENTRIES = 1 << 17  # of a list of strings or whole numbers; the longest episode has 27,000
_MAX_FIELDS = 1 << 18  # of all lists of a record, which has about ten, most of them packed into one
_MAX_PARTS = 1 << 12  # of a record outside of its lists: features, their names and types
_MAX_RATIO = 100  # decompressed to compressed; gzip hardly shrinks frames, and zeros 30 times
SMALL = 1 << 24  # bytes that a shard may hold at any ratio
_PIECE = 1 << 20  # bytes inflated at a time
GZIP_MAGIC = b"\x1f\x8b"
AGAIN = "download the shard again"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types of protobuf
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}
_BYTES_LIST, _FLOAT_LIST, _INT64_LIST = _LISTS = 1, 2, 3  # fields of tf.train.Feature

Value = list[memoryview] | np.ndarray  # strings, float32 or int64


class Record(NamedTuple):
    place: str  # opens messages about it
    number: int  # in its file, from 0
    offset: int  # of its first byte in the decompressed stream
    data: bytes
    read: int  # bytes of the file read so far


def records(file: Path, checked: bool = True) -> Generator[Record, None, None]:
    """The records of a shard. Only a look at what a file is may leave out the checksums."""
    checksum = crc32c() if checked else None
    most = max(SMALL, _MAX_RATIO * file.stat().st_size)
    offset = 0
    with open(file, "rb") as raw, gzip.GzipFile(fileobj=raw) as stream:

        def matches(data: bytes, crc: int) -> bool:
            return checksum is None or masked(checksum(data)) == crc

        def take(count: int, what: str) -> bytes:
            """Memory grows with what is there, not with what is asked for."""
            pieces, left = [], count
            try:
                while left and (piece := stream.read(min(left, _PIECE))):
                    pieces.append(piece)
                    left -= len(piece)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(
                    f"{place}: the gzip stream is damaged or cut off near byte {raw.tell()} of the "
                    f"file ({str(error).rstrip('.')}); {AGAIN}"
                ) from None
            if left and (pieces or what != "length"):
                raise ValueError(
                    f"{place}: the stream ends after {count - left} of the {count} bytes of its "
                    f"{what}; {AGAIN}"
                )
            return b"".join(pieces)

        for number in itertools.count():
            place = f"{file}: record {number} (at byte {offset} of the decompressed stream)"
            header = take(12, "length")
            if not header:
                break
            length, crc = struct.unpack("<QI", header)
            if not matches(header[:8], crc):
                raise ValueError(f"{place}: the checksum of its length does not match; {AGAIN}")
            if length > MAX_RECORD:
                raise ValueError(
                    f"{place}: says it has {length} bytes, more than any episode ({MAX_RECORD}); "
                    f"{AGAIN}"
                )
            if offset + length > most:
                raise ValueError(
                    f"{place}: with it the shard would hold more than {most} bytes, which no data "
                    f"of its size does; {AGAIN}"
                )
            data = take(length, "data")
            (crc,) = struct.unpack("<I", take(4, "checksum"))
            if not matches(data, crc):
                raise ValueError(f"{place}: the checksum of its data does not match; {AGAIN}")
            yield Record(place, number, offset, data, raw.tell())
            offset += 16 + length
    if number == 0:
        raise ValueError(f"{file}: holds no record; {AGAIN}")


def crc32c() -> Callable[[bytes], int]:
    try:
        import google_crc32c
    except ImportError:
        raise ImportError(
            'TFRecords are checked with google-crc32c; install it with pip install "rbve[rlu]"'
        ) from None
    return google_crc32c.value


def masked(crc: int) -> int:
    """As TFRecords store it, since the checksum of data holding checksums is weak."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def parse_example(data: bytes, names: Container[str] | None = None) -> dict[str, Value]:
    """Features by name, all or those of `names`. Strings are views into `data`."""
    parsed: dict[str, Value] = {}
    parts, entries = Budget(_MAX_PARTS), Budget(_MAX_FIELDS)
    for number, wire, features in fields(memoryview(data), parts):
        if (number, wire) != (1, _BYTES):
            continue
        for number, wire, entry in fields(features, parts):
            if (number, wire) != (1, _BYTES):
                continue
            name, feature = "", memoryview(b"")
            for number, wire, value in fields(entry, parts):
                if (number, wire) == (1, _BYTES):
                    try:
                        name = str(value, "utf-8")
                    except UnicodeDecodeError:
                        raise ValueError("the name of a feature is not text") from None
                elif (number, wire) == (2, _BYTES):
                    feature = value
            if names is None or name in names:
                parsed[name] = []
                for number, wire, value in fields(feature, parts):
                    if wire == _BYTES and number in _LISTS:
                        try:
                            parsed[name] = _parse_list(number, value, entries)
                        except ValueError as error:
                            raise ValueError(f"feature {name!r}: {error}") from None
    return parsed


class Budget:
    """How many more fields a record may have; each costs time, however few bytes it takes."""

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise ValueError(f"more than {self.most} fields, which no record has; {AGAIN}")


def _parse_list(kind: int, data: memoryview, entries: Budget) -> Value:
    pieces: list[Any] = []
    count = 0
    for number, wire, value in fields(data, entries):
        if number != 1:
            continue
        if kind == _BYTES_LIST and wire == _BYTES:
            pieces.append(value)
        elif kind == _FLOAT_LIST and wire in (_BYTES, _FIXED32):
            if len(value) % 4:
                raise ValueError(f"floats in {len(value)} bytes, which 4 does not divide")
            pieces.append(np.frombuffer(value, "<f4"))
        elif kind == _INT64_LIST and wire in (_BYTES, _VARINT):
            pieces.append(_varints(value) if wire == _BYTES else np.array([value], np.uint64))
            count += len(pieces[-1])
        if max(count, len(pieces) if kind == _BYTES_LIST else 0) > _MAX_ENTRIES:
            raise ValueError(f"more than {_MAX_ENTRIES} entries")
    if kind == _BYTES_LIST:
        return pieces
    if kind == _FLOAT_LIST:
        return np.concatenate([np.empty(0, np.float32), *pieces])
    return np.concatenate([np.empty(0, np.uint64), *pieces]).view(np.int64)


def fields(data: memoryview, budget: Budget) -> Iterator[tuple[int, int, Any]]:
    """(number, wire type, value) of each field of a protobuf message."""
    at, end = 0, len(data)
    while at < end:
        budget.spend()
        key, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        elif wire in _FIXED_SIZES:
            size = _FIXED_SIZES[wire]
        else:
            raise ValueError(f"not a protobuf message: wire type {wire}")
        if size > end - at:
            raise ValueError("not a protobuf message: a field runs past its end")
        yield number, wire, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """(number, position behind it) of 7 bits a byte, lowest first."""
    value = shift = 0
    for byte in data[at : at + 10]:
        at += 1
        if byte < 128:
            return (value | byte << shift) & 0xFFFFFFFFFFFFFFFF, at
        value |= (byte & 127) << shift
        shift += 7
    if shift < 70:
        raise ValueError("not a protobuf message: a number runs past its end")
    raise ValueError("not a protobuf message: a number of more than 10 bytes")


def _varints(data: memoryview) -> np.ndarray:
    """All numbers of a packed list, (N,) uint64."""
    raw = np.frombuffer(data, np.uint8)
    if len(raw) > 10 * _MAX_ENTRIES:
        raise ValueError(f"more than {_MAX_ENTRIES} entries")
    last = raw < 128
    if last.all():
        return raw.astype(np.uint64)
    if not last[-1]:
        raise ValueError("not a protobuf message: a number runs past its end")
    starts = np.concatenate([[0], np.flatnonzero(last)[:-1] + 1])
    sizes = np.diff(starts, append=len(raw))
    if sizes.max() > 10:
        raise ValueError("not a protobuf message: a number of more than 10 bytes")
    shift = 7 * (np.arange(len(raw)) - np.repeat(starts, sizes))
    return np.add.reduceat((raw & 127).astype(np.uint64) << shift.astype(np.uint64), starts)
