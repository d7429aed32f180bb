"""Torsos: observations to features, a file each. A file's presence is its registration.

A torso's file holds

    TAKES     which observations it can take, in words for an error message
    HIDDEN    units per dense layer where none are asked for
    fit       (shape) -> 0 where it cannot take observations of that shape, 1 where it can,
              more where "auto" may choose it: the largest number wins
    make      (shape, hidden, key) -> a module from (*shape, B) to (features, B), whose `outputs`
              is the number of features; bytes are pixels, from 0 to 1

and, where it differs,

    HIDDEN_WITH_MEMORY     units per dense layer before a memory
"""

from collections.abc import Sequence
from typing import Any

from rbve.registry import Registry

_FILES = Registry("torso", __name__, __file__)
TORSOS = ("auto", *_FILES.names())


def load_torso(name: str) -> Any:
    """The module of one torso; ValueError where there is none of that name."""
    if name not in TORSOS[1:]:
        raise ValueError(f"torso must be one of {', '.join(TORSOS)}; got {name!r}")
    return _FILES.load(name)


def torso_for(name: str, obs_shape: Sequence[int]) -> str:
    """The name of the torso that "auto" means for a shape, or the name itself.

    By shape alone, so that whoever acts agrees with whoever learned. ValueError for an unknown
    torso, or one that cannot take such observations.
    """
    shape = tuple(obs_shape)
    if name == "auto":
        return max(TORSOS[1:], key=lambda each: load_torso(each).fit(shape))
    torso = load_torso(name)
    if not torso.fit(shape):
        raise ValueError(
            f"torso {name} takes {torso.TAKES}; observations have the shape {shape}; choose mlp"
        )
    return name


def hidden_for(torso: str, hidden: Sequence[int], memory: int = 0) -> tuple[int, ...]:
    """The widths asked for, or the torso's own."""
    if hidden:
        return tuple(hidden)
    module = load_torso(torso)
    return getattr(module, "HIDDEN_WITH_MEMORY", module.HIDDEN) if memory else module.HIDDEN
