"""From packed rows, or from columns picked apart, to what a loss takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp

from rbve.training.views import Pairs
from rbve.types import Array, Batch

SCALARS = 6  # action reward discount next_action has_next g
G = 5  # where g stands among them


class Picked(NamedTuple):
    """Rows of a batch, column by column, on the host or the device; (B,) or (K, B) leads."""

    frames: Any  # (B, stack, ...) uint8 or float32
    next_frames: Any
    scalars: Any  # (B, SCALARS) float32
    masks: Any  # (B, 2A) bool, legal and next_legal; None without masks


@dataclass(frozen=True)
class Layout:
    """Where things stand in a packed float32 row:

    [ frames | bootstrap frames | action reward discount next_action has_next g | masks ]
    """

    frame_shape: tuple[int, ...]  # of one frame as the network sees it
    stack: int  # frames per observation, joined along their last axis
    actions: int
    masked: bool  # rows end with legal and next_legal
    pixels: bool  # frames are bytes

    @property
    def rows_each(self) -> int:
        return 1

    @property
    def obs_shape(self) -> tuple[int, ...]:
        if self.stack == 1:
            return self.frame_shape
        *outer, last = self.frame_shape or (1,)
        return (*outer, self.stack * last)

    @property
    def width(self) -> int:
        return 2 * math.prod(self.obs_shape) + SCALARS + 2 * self.actions * self.masked

    def blank(self, batch_size: int) -> Picked:
        return self.unpack(jnp.zeros((batch_size, self.width)))

    def fetch(self, rows: Array, index: Array) -> Picked:
        """Transitions (B,) of packed rows in memory."""
        return self.unpack(rows.at[index].get(mode="promise_in_bounds"))

    def unpack(self, rows: Array) -> Picked:
        """Packed rows (B, width) as columns."""
        size = math.prod(self.obs_shape)
        frames = rows[:, : 2 * size].reshape(-1, 2, self.stack, *self.frame_shape)
        if self.pixels:
            frames = frames.astype(jnp.uint8)
        return Picked(
            frames=frames[:, 0],
            next_frames=frames[:, 1],
            scalars=rows[:, 2 * size : 2 * size + SCALARS],
            masks=rows[:, 2 * size + SCALARS :] > 0 if self.masked else None,
        )

    def batch(self, picked: Picked, g_scale: Array) -> tuple[Pairs, Batch]:
        action, reward, discount, next_action, has_next, g = (
            picked.scalars[:, k] for k in range(SCALARS)
        )
        masks = picked.masks
        return (
            Pairs(self.join(picked.frames), self.join(picked.next_frames)),
            Batch(
                action=action.astype(jnp.int32),
                reward=reward,
                discount=discount,
                next_action=next_action.astype(jnp.int32),
                has_next_action=has_next > 0,
                g=g,
                g_scale=g_scale,
                weight=jnp.ones_like(g),
                legal=None if masks is None else masks[:, : self.actions],
                next_legal=None if masks is None else masks[:, self.actions :],
            ),
        )

    def join(self, frames: Array) -> Array:
        """(B, stack, ..., c) to (B, ..., stack · c)."""
        if self.stack > 1:
            frames = jnp.moveaxis(frames.reshape(-1, self.stack, *self.frame_shape), 1, -2)
        return frames.reshape(-1, *self.obs_shape)
