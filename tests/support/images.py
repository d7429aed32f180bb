"""Pictures as arrays."""

from __future__ import annotations

import cv2
import numpy as np


def pixels(png: bytes) -> np.ndarray:
    """(height, width, 3) of 0 to 255: red, green, blue."""
    return cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
