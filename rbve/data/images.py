"""PNG and JPEG frames, decoded to arrays of a known shape."""

import io
import math
import struct
import warnings
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rbve.data.manifest import PACKED, named

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


def decode_png(pngs: Sequence[memoryview], shape: tuple[int, ...]) -> np.ndarray:
    """(N, *shape) uint8. Of colours, OpenCV returns a file's channels in reverse."""
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


def decode_jpeg(files: Sequence[bytes], shape: tuple[int, ...], where: str) -> np.ndarray:
    """(N, *shape) uint8."""
    try:
        from PIL import Image  # as minari does, so that pixels are equal
    except ImportError:
        raise ImportError('JPEG frames need Pillow: pip install "rbve[minari]"') from None
    if len(files) * math.prod(shape) > PACKED * sum(map(len, files)):
        raise ValueError(f"{where}: says its frames have shape {shape}, more than it holds")
    frames = np.empty((len(files), *shape), np.uint8)
    for step, content in enumerate(files):
        with named(f"{where}, step {step}"), warnings.catch_warnings():
            warnings.simplefilter("error")  # Pillow warns of images that are absurdly large
            with Image.open(io.BytesIO(content), formats=["JPEG"]) as image:
                size = (image.height, image.width, *(() if image.mode == "L" else (3,)))
                if size != shape or image.mode not in ("L", "RGB"):
                    raise ValueError(f"{image.mode} image of shape {size} instead of {shape}")
                frames[step] = np.asarray(image)
    return frames
