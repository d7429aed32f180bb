"""TFRecords: every length and checksum is checked, and no number in a file is trusted."""

from __future__ import annotations

import gzip
import struct
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from rlu_records import example, frame, varint_bytes, write_shard

from rbve.data._rlu.tfrecord import (
    MAX_RECORD,
    SMALL,
    Budget,
    Record,
    fields,
    parse_example,
    records,
)

pytest.importorskip("google_crc32c")


def bitwise_crc32c(data: bytes) -> int:
    """By the definition of the polynomial, one bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def mask(crc: int) -> int:
    rotated = crc // 2**15 + crc % 2**15 * 2**17
    return (rotated + 0xA282EAD8) % 2**32


def shard(path: Path, *data: bytes) -> Path:
    write_shard(path, data)
    return path


def gzipped(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content))
    return path


def read(path: Path) -> list[Record]:
    return list(records(path))


def test_the_reference_checksum_is_the_known_one() -> None:
    assert bitwise_crc32c(b"123456789") == 0xE3069283


def test_a_record_is_framed_as_specified() -> None:
    data = b"some data"
    length = bytes([9, 0, 0, 0, 0, 0, 0, 0])
    crcs = [mask(bitwise_crc32c(part)).to_bytes(4, "little") for part in (length, data)]
    assert frame(data) == length + crcs[0] + data + crcs[1]


def test_records_come_with_their_place(tmp_path: Path) -> None:
    path = shard(tmp_path / "a", b"one", b"", b"three")
    found = read(path)
    assert [record.data for record in found] == [b"one", b"", b"three"]
    assert [record.number for record in found] == [0, 1, 2]
    assert [record.offset for record in found] == [0, 19, 35]
    assert found[-1].read == path.stat().st_size
    assert found[1].place == f"{path}: record 1 (at byte 19 of the decompressed stream)"


def test_a_stream_of_several_gzip_members(tmp_path: Path) -> None:
    path = tmp_path / "a"
    whole = frame(b"one") + frame(b"two") + frame(b"three")
    path.write_bytes(gzip.compress(whole[:25]) + gzip.compress(whole[25:]))
    assert [record.data for record in read(path)] == [b"one", b"two", b"three"]


@pytest.mark.parametrize("position", range(19, 19 + 19))
def test_every_byte_of_a_record_is_checked(tmp_path: Path, position: int) -> None:
    """A flip inside a valid gzip stream, so that only the record's own checksums can tell."""
    content = bytearray(frame(b"one") + frame(b"two") + frame(b"end"))
    content[position] ^= 1
    path = gzipped(tmp_path / "a", bytes(content))
    part = "length" if position < 19 + 12 else "data"
    with pytest.raises(ValueError, match=f"a: record 1 .at byte 19 .*{part} does not match"):
        read(path)


def test_every_byte_of_a_gzip_file_is_checked(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = shard(tmp_path / "a", rng.bytes(300), rng.bytes(300))
    content = path.read_bytes()
    for position in range(11, len(content)):  # behind the header's time stamp and padding bits
        broken = bytearray(content)
        broken[position] ^= 0x10
        path.write_bytes(bytes(broken))
        with pytest.raises(ValueError, match=r"a: record \d .at byte \d+ of"):
            read(path)


def test_a_file_cut_anywhere(tmp_path: Path) -> None:
    path = shard(tmp_path / "a", b"one" * 9, b"two" * 9)
    content = path.read_bytes()
    for size in range(1, len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"gzip stream is damaged or cut off .*download"):
            read(path)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (25, "record 1 .at byte 19 .* ends after 6 of the 12 bytes of its length"),
        (33, "record 1 .at byte 19 .* ends after 2 of the 3 bytes of its data"),
        (36, "record 1 .at byte 19 .* ends after 2 of the 4 bytes of its checksum"),
    ],
)
def test_a_record_cut_off(tmp_path: Path, size: int, message: str) -> None:
    path = gzipped(tmp_path / "a", (frame(b"one") + frame(b"two"))[:size])
    with pytest.raises(ValueError, match=message):
        read(path)


@pytest.mark.parametrize("content", [b"", gzip.compress(b"")], ids=["empty", "empty gzip"])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="a: holds no record; download the shard again"):
        read(path)


def test_no_gzip_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(frame(b"one"))
    with pytest.raises(ValueError, match="Not a gzipped file"):
        read(path)


@pytest.mark.parametrize("length", [MAX_RECORD + 1, 2**40, 2**64 - 1])
def test_an_absurd_length_is_refused(tmp_path: Path, length: int) -> None:
    header = struct.pack("<Q", length)
    crc = mask(bitwise_crc32c(header))
    path = gzipped(tmp_path / "a", header + struct.pack("<I", crc) + b"x" * 50)
    with pytest.raises(ValueError, match=f"says it has {length} bytes, more than any episode"):
        read(path)


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (SMALL, f"ends after 50 of the {SMALL} bytes"),
        (MAX_RECORD, f"the shard would hold more than {SMALL} bytes"),
    ],
)
def test_a_large_length_takes_no_memory(tmp_path: Path, length: int, message: str) -> None:
    header = struct.pack("<Q", length)
    crc = mask(bitwise_crc32c(header))
    path = gzipped(tmp_path / "a", header + struct.pack("<I", crc) + b"x" * 50)
    tracemalloc.start()
    with pytest.raises(ValueError, match=message):
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6


VALUES = {
    "ints": np.array([0, 1, 127, 128, 300, -1, 2**63 - 1, -(2**63)]),
    "small": np.array([5, 0, 127]),
    "floats": np.array([1.5, -2.25, 1e-30], np.float32),
    "strings": [b"", b"abc", b"x" * 200],
    "été": np.array([7]),
}


def test_an_example_reads_back() -> None:
    found = parse_example(example(VALUES))
    assert list(found) == list(VALUES)
    for name in ("ints", "small", "floats", "été"):
        value = found[name]
        assert isinstance(value, np.ndarray)
        assert value.dtype == ("float32" if name == "floats" else "int64")
        assert value.tolist() == VALUES[name].tolist()  # type: ignore[union-attr]
    assert [bytes(string) for string in found["strings"]] == VALUES["strings"]


def test_only_wanted_features_are_parsed() -> None:
    assert list(parse_example(example(VALUES), {"floats", "absent"})) == ["floats"]


def delimited(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def feature(name: bytes, body: bytes) -> bytes:
    return delimited(1, delimited(1, delimited(1, name) + delimited(2, body)))


def test_bytes_written_by_hand() -> None:
    """Lists that are not packed, as protobuf also allows, and fields to skip."""
    floats = b"".join(b"\x0d" + struct.pack("<f", value) for value in (0.5, 4))
    ints = b"\x08\x03\x08\xac\x02"
    data = feature(b"f", delimited(2, floats)) + b"\x10\x05" + feature(b"i", delimited(3, ints))
    found = parse_example(data + b"\x19" + bytes(8))
    assert found["f"].tolist() == [0.5, 4]  # type: ignore[union-attr]
    assert found["i"].tolist() == [3, 300]  # type: ignore[union-attr]
    assert parse_example(feature(b"e", b"")) == {"e": []}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\x05abc", "a field runs past its end"),
        (b"\x0a", "a number runs past its end"),
        (b"\xff" * 10, "a number of more than 10 bytes"),
        (b"\x0b", "wire type 3"),
        (b"\x0d\x00\x00", "a field runs past its end"),
        (feature(b"\xff", b""), "name of a feature is not text"),
        (feature(b"f", delimited(2, delimited(1, b"abcde"))), "'f': floats in 5 bytes"),
        (feature(b"i", delimited(3, delimited(1, b"\x01\x80"))), "'i': .*runs past its end"),
        (feature(b"i", delimited(3, delimited(1, b"\x80" * 10 + b"\x01"))), "'i': .*10 bytes"),
    ],
)
def test_bad_protobuf(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_example(data)


def test_long_lists_are_refused_before_they_fill_memory() -> None:
    strings = field_bytes(1, b"\x0a\x00" * 200_000)
    ints = field_bytes(3, field_bytes(1, b"\x01" * 1_400_000))
    for body in (strings, ints):
        entry = field_bytes(1, b"n") + field_bytes(2, body)
        with pytest.raises(ValueError, match="'n': more than 131072 entries"):
            parse_example(field_bytes(1, field_bytes(1, entry)))


def field_bytes(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint_bytes(len(data)) + data


ONES, EMPTIES = b"\x08\x01", b"\x0a\x00"  # the shortest numbers and strings


@pytest.mark.parametrize(
    "body",
    [
        field_bytes(3, ONES * 270_000),
        field_bytes(3, field_bytes(1, b"\x01" * 100_000) * 2),
        field_bytes(2, EMPTIES * 270_000),
        field_bytes(1, EMPTIES * 100_000) * 3,
        field_bytes(1, b"\x10\x00" * 270_000),
        b"\x20\x00" * 270_000,
    ],
)
def test_many_short_fields_are_refused_before_they_take_time(body: bytes) -> None:
    entry = field_bytes(1, b"n") + field_bytes(2, body)
    whole = field_bytes(1, field_bytes(1, entry))
    for data in (whole, field_bytes(1, field_bytes(1, entry) * 3), b"\x10\x00" * 270_000 + whole):
        with pytest.raises(ValueError, match=r"more than \d+ (entries|fields)"):
            parse_example(data)


def test_a_shard_cannot_grow_without_limit(tmp_path: Path) -> None:
    """Zeros shrink a thousand times; records stay below a hundred, whatever they say."""
    file = tmp_path / "a"
    write_shard(file, [bytes(1 << 23), bytes(1 << 23)])
    with pytest.raises(ValueError, match=r"record 1 .*: with it the shard would hold more than"):
        list(records(file))
    write_shard(file, [bytes(1 << 23), b"x" * 100])
    assert len(list(records(file))) == 2


def test_fields_of_a_message() -> None:
    found = list(fields(memoryview(b"\x08\x96\x01\x12\x02hi\x1d\x01\x02\x03\x04"), Budget(3)))
    assert [(number, wire) for number, wire, _ in found] == [(1, 0), (2, 2), (3, 5)]
    assert found[0][2] == 150
    assert bytes(found[1][2]) == b"hi"
    assert bytes(found[2][2]) == b"\x01\x02\x03\x04"


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shard(tmp_path / "a", b"one")
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    with pytest.raises(ImportError, match=r'pip install "rbve\[rlu\]"'):
        read(path)
    assert [record.data for record in records(path, checked=False)] == [b"one"]
