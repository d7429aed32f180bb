"""One convolution, as MinAtar's authors have it (Young and Tian, 2019)."""

from collections.abc import Sequence

from rbve.networks.conv import Image, Kernel
from rbve.types import Array

TAKES = "images, height × width (× channels)"
HIDDEN = (128,)
SMALL = 16  # cells a side, at most
LEAST = 5  # cells a side: of fewer a convolution leaves next to nothing


def fit(shape: Sequence[int]) -> int:
    """Boards of a few cells with channels."""
    if len(shape) not in (2, 3):
        return 0
    sides = shape[:2]
    return 3 if len(shape) == 3 and min(sides) >= LEAST and max(sides) <= SMALL else 1


def make(shape: Sequence[int], hidden: Sequence[int], key: Array) -> Image:
    return Image(shape, (Kernel(16, 3, 1),), "VALID", hidden, key)
