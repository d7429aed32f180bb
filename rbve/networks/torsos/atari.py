"""The paper's convolutions (Mnih et al., 2015), with the SAME padding of the original."""

from collections.abc import Sequence

from rbve.networks.conv import Image, Kernel
from rbve.networks.torsos.board import LEAST, SMALL
from rbve.types import Array

TAKES = "images, height × width (× channels)"
HIDDEN = (512,)
HIDDEN_WITH_MEMORY = ()  # R2D2 gives its memory the convolutions as they are
KERNELS = (Kernel(32, 8, 4), Kernel(64, 4, 2), Kernel(64, 3, 1))


def fit(shape: Sequence[int]) -> int:
    """Images larger than a board, with channels or without."""
    if len(shape) not in (2, 3):
        return 0
    large = min(shape) > 2 * SMALL if len(shape) == 2 else max(shape[:2]) > SMALL
    return 3 if large and min(shape[:2]) >= LEAST else 1


def make(shape: Sequence[int], hidden: Sequence[int], key: Array) -> Image:
    return Image(shape, KERNELS, "SAME", hidden, key)
