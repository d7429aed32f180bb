"""Archives of arrays: damage is named, and no size a file claims is believed."""

from __future__ import annotations

import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from rbve.data.npy import Member, opened


def archive_of(tmp_path: Path, data: bytes, packed: int = zipfile.ZIP_STORED) -> Path:
    """An archive of one array, x, in these bytes."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w", packed) as archive:
        archive.writestr("x.npy", data)
    return tmp_path / "a.npz"


def array(path: Path) -> np.ndarray:
    with opened(path) as archive:
        member = Member(archive, "x")
        return member.take(member.rows)


def header(text: str, data: bytes = b"", version: bytes = b"\1\0") -> bytes:
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text.encode("latin1") + data


SMALL = "{'descr': '<f8', 'fortran_order': False, 'shape': (5, 2), }\n"
HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (5, 1000000000000), }\n"
NUMBERS = np.arange(10.0).reshape(5, 2)
WHOLE = header(SMALL, NUMBERS.tobytes())
PACKING = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]


@pytest.mark.parametrize("packed", PACKING)
def test_rows_are_taken_in_order(tmp_path: Path, packed: int) -> None:
    with opened(archive_of(tmp_path, WHOLE, packed)) as archive:
        member = Member(archive, "x")
        assert (member.rows, member.row_shape, member.row_bytes) == (5, (2,), 16)
        np.testing.assert_array_equal(member.take(2), NUMBERS[:2])
        np.testing.assert_array_equal(member.take(9), NUMBERS[2:])
        assert member.left == 0


@pytest.mark.parametrize("packed", PACKING)
def test_checksums_are_compared(tmp_path: Path, packed: int) -> None:
    data = bytearray(archive_of(tmp_path, WHOLE, packed).read_bytes())
    data[data.rindex(b"PK\1\2") + 16] ^= 1
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.npz: array 'x': cannot be read \(Bad CRC-32"):
        array(tmp_path / "a.npz")


def test_a_flipped_byte_is_found(tmp_path: Path) -> None:
    data = bytearray(archive_of(tmp_path, WHOLE).read_bytes())
    data[data.index(NUMBERS.tobytes()) + 30] ^= 1
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.npz: array 'x': cannot be read \(Bad CRC-32"):
        array(tmp_path / "a.npz")


@pytest.mark.parametrize("share", [0, 0.3, 0.9, 0.999])
def test_a_cut_file_is_named(tmp_path: Path, share: float) -> None:
    data = archive_of(tmp_path, WHOLE).read_bytes()
    (tmp_path / "a.npz").write_bytes(data[: int(share * len(data))])
    with pytest.raises(ValueError, match=r"a\.npz: cannot be read \(File is not a zip file\)"):
        array(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (header(HUGE), " says it has shape .* of float64, which is 40000000000000 bytes"),
        (header(HUGE.replace("(5, ", "(-5, ")), r"has the shape \(-5, 1000000000000\)"),
        (header(SMALL.replace("5", "5L")), "says it has"),
        (header("(" * 9000 + "\n"), "cannot be read"),
        (header("-" * 9000 + "1\n"), "cannot be read"),
        (header("{[]: 1}\n"), "cannot be read"),
        (header(SMALL.replace("<f8", "zz")), "cannot be read"),
        (header(HUGE, version=b"\3\0"), r"cannot be read \(version \(3, 0\)"),
        (header(SMALL, bytes(81)), "which is 80 bytes, and the file holds 81"),
        (b"not an array", "cannot be read"),
        (b"", "cannot be read"),
    ],
)  # fmt: skip
def test_odd_headers_take_no_memory(tmp_path: Path, data: bytes, message: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=rf"a\.npz: array 'x'.*{message}"):
            array(archive_of(tmp_path, data))
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


def test_sizes_are_not_believed(tmp_path: Path) -> None:
    data = bytearray(archive_of(tmp_path, header(HUGE), zipfile.ZIP_DEFLATED).read_bytes())
    struct.pack_into("<I", data, data.rindex(b"PK\1\2") + 24, 2_000_000_000)
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(ValueError, match=r"array 'x' claims 2000000000 bytes in .* of a file of"):
        array(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="array 'x' is compressed in a way NumPy does not write"):
        array(archive_of(tmp_path, WHOLE, zipfile.ZIP_BZIP2))


def test_bytes_that_are_no_truth(tmp_path: Path) -> None:
    flags = SMALL.replace("<f8", "|b1").replace("(5, 2)", "(3,)")
    np.testing.assert_array_equal(
        array(archive_of(tmp_path, header(flags, b"\0\1\0"))), [False, True, False]
    )
    with pytest.raises(ValueError, match="array 'x' holds bytes that are neither True nor False"):
        array(archive_of(tmp_path, header(flags, b"\0\2\0")))
