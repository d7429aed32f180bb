"""The experience of an online agent with memory, and the batch made of a piece of it."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from rbve.networks.recurrent import Seen
from rbve.training.batches.steps import Steps
from rbve.types import Array, Batch


class ActorRows(NamedTuple):
    """Of all actors; leading (C, N) for a chunk, (K, C, N) in the ring."""

    obs: Array
    last_action: Array  # int32, −1 at the first row of an episode
    last_reward: Array
    first: Array  # bool
    action: Array  # int32, chosen; −1 in final rows
    executed: Array  # int32, by the environment
    reward: Array
    terminated: Array  # bool, by this row's decision
    final: Array  # bool, no decision here
    legal: Array | None  # (..., A) bool


def sequence_batch(rows: ActorRows, warm: int, n: int, gamma: float) -> tuple[Steps, Batch]:
    """What networks see of sequences (L, B), and the Batch of the steps from `warm` on.

    A window of n steps ends with its episode. Where it leaves the sequence its weight is 0.
    """
    length = rows.final.shape[0]
    decides = rows.action >= 0
    reward, terminated = jnp.zeros_like(rows.reward), jnp.zeros_like(rows.final)
    steps = jnp.zeros(rows.final.shape, jnp.int32)
    open_ = jnp.ones_like(rows.final)
    for k in range(n):
        # Beyond the end nothing is decided; there `open_` only says that the window goes on.
        ahead = [jnp.roll(column, -k, axis=0) for column in (decides, rows.reward, rows.terminated)]
        known = (jnp.arange(length) + k < length)[:, None]
        inside = open_ & ahead[0] & known
        reward += jnp.where(inside, gamma**k * ahead[1], 0.0)
        terminated |= inside & ahead[2]
        steps += inside
        open_ &= ahead[0] | ~known
    here = jnp.arange(length)[:, None]
    # Cut by the sequence's end and not by the episode's: no bootstrap state, so no weight.
    later = here + steps
    whole = decides & (terminated | (later < length))
    train = slice(warm, None)
    later = jnp.minimum(later, length - 1)[train]
    next_action = jnp.take_along_axis(rows.action, later, axis=0).reshape(-1)

    def flat(column: Array) -> Array:
        return column[train].reshape(-1)

    masks = rows.legal
    width = None if masks is None else masks.shape[-1]
    return (
        Steps(Seen(rows.obs, rows.last_action, rows.last_reward, rows.first), later),
        Batch(
            action=jnp.maximum(flat(rows.action), 0),
            reward=flat(reward),
            discount=flat(jnp.where(terminated, 0.0, gamma**steps)),
            next_action=jnp.maximum(next_action, 0),
            has_next_action=next_action >= 0,
            g=jnp.zeros_like(flat(reward)),
            g_scale=jnp.ones(()),
            weight=flat(whole.astype(reward.dtype)),
            legal=None if masks is None else masks[train].reshape(-1, width),
            next_legal=None
            if masks is None
            else jnp.take_along_axis(masks, later[..., None], axis=0).reshape(-1, width),
        ),
    )
