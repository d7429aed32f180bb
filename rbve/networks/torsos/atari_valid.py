"""The paper's convolutions without padding, as most public DQN code has them."""

from collections.abc import Sequence

from rbve.networks.conv import Image
from rbve.networks.torsos import atari
from rbve.types import Array

TAKES, HIDDEN, HIDDEN_WITH_MEMORY = atari.TAKES, atari.HIDDEN, atari.HIDDEN_WITH_MEMORY


def fit(shape: Sequence[int]) -> int:
    """Never chosen by itself."""
    return min(atari.fit(shape), 1)


def make(shape: Sequence[int], hidden: Sequence[int], key: Array) -> Image:
    return Image(shape, atari.KERNELS, "VALID", hidden, key)
