"""Frames that Minari keeps as JPEG."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence

import numpy as np

from rbve.data.hdf5 import PACKED, named


def decode(files: Sequence[bytes], shape: tuple[int, ...], where: str) -> np.ndarray:
    """(rows, *shape) uint8."""
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
