"""Which torsos there are, and which one observations of a shape get.

"atari" is the paper's (Mnih et al., 2015, with the padding of the original), "board" the one of
MinAtar's authors (Young and Tian, 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

Padding = Literal["SAME", "VALID"]


class Kernel(NamedTuple):
    filters: int
    side: int
    stride: int


class Plan(NamedTuple):
    """An image torso: convolutions with a ReLU each, then dense layers of these widths."""

    kernels: tuple[Kernel, ...]
    padding: Padding
    hidden: tuple[int, ...]


ATARI = (Kernel(32, 8, 4), Kernel(64, 4, 2), Kernel(64, 3, 1))
PLANS: dict[str, Plan] = {
    "atari": Plan(ATARI, "SAME", (512,)),
    "atari_valid": Plan(ATARI, "VALID", (512,)),
    "board": Plan((Kernel(16, 3, 1),), "VALID", (128,)),
}
TORSOS = ("auto", "mlp", *PLANS)
HIDDEN = (56, 56)  # of the mlp: the paper's on bsuite
BOARD = 16  # cells a side; larger ones are images
LEAST = 5  # cells a side; of fewer a convolution leaves next to nothing


def torso_for(name: str, obs_shape: Sequence[int]) -> str:
    """What "auto" means: by shape alone, so that whoever acts agrees with who learned.

    Three axes are an image or a board unless a side is tiny, as are two long ones; everything else
    is a vector.
    """
    if name not in TORSOS:
        raise ValueError(f"torso must be one of {', '.join(TORSOS)}; got {name!r}")
    if name in PLANS and len(obs_shape) not in (2, 3):
        raise ValueError(
            f"torso {name} takes images, height × width (× channels); observations have the shape "
            f"{tuple(obs_shape)}; choose mlp"
        )
    if name != "auto":
        return name
    sides = tuple(obs_shape[:2])
    if len(obs_shape) == 3 and min(sides) >= LEAST:
        return "board" if max(sides) <= BOARD else "atari"
    return "atari" if len(obs_shape) == 2 and min(sides) > 2 * BOARD else "mlp"


def hidden_for(torso: str, hidden: Sequence[int], memory: int = 0) -> tuple[int, ...]:
    """The widths asked for, or the torso's own; R2D2 remembers Atari's convolutions as they are."""
    if hidden or (memory and torso.startswith("atari")):
        return tuple(hidden)
    return PLANS[torso].hidden if torso in PLANS else HIDDEN
