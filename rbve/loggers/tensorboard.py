"""TensorBoard: event files in OUT/tensorboard, shown by `tensorboard --logdir OUT/tensorboard`.

An event file is a sequence of records: length, its checksum, bytes, their checksum. The bytes are a
protocol buffer with time, step and a named number. Nothing needs to be installed to write them.
"""

import math
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from rbve.rows import Run

FOLDER = "tensorboard"
_MARK = "rbve"  # closes the names of our files
_LARGEST = float.fromhex("0x1.fffffep127")  # of four bytes
_POLYNOMIAL = 0x82F63B78  # CRC-32C, bits reversed


def opened(out: Path, run: Run) -> "_Events":
    folder = out / FOLDER / run.job
    folder.mkdir(parents=True, exist_ok=True)
    for earlier in folder.glob(f"events.out.tfevents.*.{_MARK}"):
        earlier.unlink()  # its rows come again, as far as they still count
    return _Events(folder / f"events.out.tfevents.{time.time_ns() // 1000}.{_MARK}")


class _Events:
    def __init__(self, file: Path) -> None:
        self._file = open(file, "wb")  # noqa: SIM115 - closed by close()
        self._write(_text(3, "brain.Event:2"))

    def add(self, step: int, figures: Mapping[str, float]) -> None:
        values = [
            _bytes(1, _text(1, name) + _key(2, 5) + _single(value))
            for name, value in figures.items()
        ]
        self._write(_key(2, 0) + _varint(step) + _bytes(5, b"".join(values)))
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _write(self, event: bytes) -> None:
        event = _key(1, 1) + struct.pack("<d", time.time()) + event
        length = struct.pack("<Q", len(event))
        self._file.write(length + _checksum(length) + event + _checksum(event))


def _single(value: float) -> bytes:
    """Four bytes; what is beyond them, as squares of a run that diverges may be, as infinite."""
    if abs(value) > _LARGEST:
        value = math.copysign(math.inf, value)
    return struct.pack("<f", value)


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _bytes(number: int, content: bytes) -> bytes:
    return _key(number, 2) + _varint(len(content)) + content


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = tuple(map(_entry, range(256)))


def _checksum(data: bytes) -> bytes:
    """CRC-32C, rotated and shifted as TFRecords have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
