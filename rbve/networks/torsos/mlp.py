"""Dense layers, for vectors and everything that is not an image."""

import math
from collections.abc import Sequence

from rbve.networks.layers import MLP
from rbve.types import Array

TAKES = "anything"
HIDDEN = (56, 56)  # the paper's on bsuite


def fit(shape: Sequence[int]) -> int:
    """Whatever the others leave."""
    return 2


def make(shape: Sequence[int], hidden: Sequence[int], key: Array) -> MLP:
    return MLP(math.prod(shape), hidden, key)
