"""PNG frames, decoded to arrays of a known shape."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def opencv() -> Any:
    try:
        import cv2
    except ImportError:
        raise ImportError(
            "PNG frames are decoded with opencv-python-headless; install it with "
            'pip install "rbve[rlu]"'
        ) from None
    return cv2


def decode_gray(pngs: Sequence[memoryview], height: int, width: int) -> np.ndarray:
    """(N, height, width, 1) uint8."""
    return decode(pngs, (height, width))[..., None]


def decode_swapped(pngs: Sequence[memoryview], height: int, width: int) -> np.ndarray:
    """(N, height, width, 3) uint8, in RGB, of frames whose files hold BGR where PNG says RGB.

    OpenCV returns a file's channels in reverse, so what it returns for these is RGB.
    """
    return decode(pngs, (height, width, 3))


def decode(pngs: Sequence[memoryview], shape: tuple[int, ...]) -> np.ndarray:
    cv2 = opencv()
    frames = np.empty((len(pngs), *shape), np.uint8)
    for index, png in enumerate(pngs):
        width, height = _check(png, index)
        if (height, width) != shape[:2]:
            raise ValueError(
                f"frame {index} has {height} × {width} pixels; it needs {shape[0]} × {shape[1]}"
            )
        try:
            frame = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
        except cv2.error:
            frame = None
        if frame is None:
            raise ValueError(f"frame {index} cannot be decoded as PNG")
        if frame.dtype != np.uint8 or frame.shape != shape:
            raise ValueError(
                f"frame {index} holds {frame.dtype} of shape {frame.shape}; it needs uint8 of "
                f"shape {shape}"
            )
        frames[index] = frame
    return frames


def _check(png: memoryview, index: int) -> tuple[int, int]:
    """(width, height), after the chunks' checksums: decoders print what they meet, or go on."""
    broken = ValueError(f"frame {index} is not a whole PNG image")
    if png[:8] != _SIGNATURE or png[12:16] != b"IHDR" or png[-8:-4] != b"IEND":
        raise broken
    at = 8
    while at < len(png):
        if at + 12 > len(png):
            raise broken
        (size,) = struct.unpack_from(">I", png, at)
        end = at + 12 + size
        if end > len(png):
            raise broken
        (crc,) = struct.unpack_from(">I", png, end - 4)
        if zlib.crc32(png[at + 4 : end - 4]) != crc:
            raise ValueError(f"frame {index}: a checksum inside the PNG image does not match")
        at = end
    width, height = struct.unpack_from(">II", png, 16)
    return width, height
