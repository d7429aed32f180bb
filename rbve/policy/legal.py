"""Which actions may be taken, as a caller says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def read_mask(legal: Any, actions: Sequence[str], shape: tuple[int, ...]) -> np.ndarray:
    """Booleans of `shape`, (A,) or (B, A)."""
    mask = np.asarray(legal)
    if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        raise ValueError(
            f"legal needs True or False for each of {len(actions)} actions; got {str(legal)[:80]}"
        )
    if mask.size == len(actions):
        mask = mask.reshape(-1)  # one for all observations
    if mask.shape not in (shape, shape[-1:]):
        raise ValueError(
            f"legal needs True or False for each of {len(actions)} actions, once or for "
            f"each observation; got the shape {mask.shape}"
        )
    if not mask.any(axis=-1).all():
        raise ValueError("legal allows no action; a decision needs at least one")
    return np.broadcast_to(mask != 0, shape)
