"""A network with memory (R2D2, Kapturowski et al., 2019).

    [torso(o_t), one_hot(a_{t−1}), tanh(r_{t−1})] → LSTM → head

Time leads and the batch is the minor axis: (T, features, B). The memory is emptied at the first
step of every episode, wherever in a sequence that is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rbve import ops
from rbve.networks.conv import Image
from rbve.networks.layers import MLP, Linear, truncated_normal
from rbve.types import Array, Head

FRAMES_AT_ONCE = 256  # pictures whose convolutions are held in memory at a time
PICTURE = 4096  # numbers of an observation; smaller ones take little memory, however many


class Seen(NamedTuple):
    """What an agent sees of a sequence of steps."""

    obs: Array  # (T, B, ...)
    last_action: Array  # (T, B) int32; −1 = none, before an episode's first action
    last_reward: Array  # (T, B)
    first: Array  # (T, B) bool, an episode begins here


class Memory(NamedTuple):
    hidden: Array  # (H, B)
    cell: Array  # (H, B)

    @staticmethod
    def empty(units: int, batch: int) -> Memory:
        return Memory(jnp.zeros((units, batch)), jnp.zeros((units, batch)))


class LSTM(eqx.Module):
    """Gates in the order input, forget, candidate, output; the forget gate starts open."""

    inputs: Linear
    recurrent: Array  # (4H, H)

    def __init__(self, features: int, units: int, key: Array) -> None:
        key_inputs, key_recurrent = jax.random.split(key)
        linear = Linear(features, 4 * units, key_inputs)
        bias = jnp.zeros((4, units)).at[1].set(1.0).reshape(-1)
        self.inputs = eqx.tree_at(lambda layer: layer.bias, linear, bias)
        self.recurrent = truncated_normal(key_recurrent, (4 * units, units), units)

    def __call__(self, x: Array, first: Array, memory: Memory) -> tuple[Array, Memory]:
        """Features (F, T, B) to what is remembered after every step (T, H, B), and at the end."""
        features, steps, batch = x.shape
        # σ(x) = ½ + ½ tanh(½x): where what drives the three σ is halved, one tanh bends all gates,
        # in half the time of a function for each.
        halves = jnp.array([0.5, 0.5, 1.0, 0.5]).repeat(self.recurrent.shape[1])
        # Row by row: of weights that were turned for it, gradients come turned and are turned back.
        inputs, recurrent = self.inputs.weight * halves[:, None], self.recurrent * halves[:, None]
        driven = inputs @ x.reshape(features, -1) + (self.inputs.bias * halves)[:, None]
        driven = driven.reshape(-1, steps, batch)
        return unroll(recurrent, driven, 1.0 - first.astype(x.dtype), memory)


@jax.custom_vjp
def unroll(recurrent: Array, driven: Array, kept: Array, memory: Memory) -> tuple[Array, Memory]:
    """`driven` (4H, T, B) is what the inputs add to the gates, `kept` (T, B) 0 where memory is
    emptied before the step. Weights and what drives are halved but for the candidate's."""
    return unroll_forward(recurrent, driven, kept, memory)[0]


def unroll_forward(
    recurrent: Array, driven: Array, kept: Array, memory: Memory
) -> tuple[tuple[Array, Memory], tuple[Any, ...]]:
    def step(memory: Memory, given: tuple[Array, Array]) -> tuple[Memory, tuple[Array, ...]]:
        drive, keep = given
        # A choice: times 0, what is not finite would stay.
        hidden, cell = (jnp.where(keep > 0, each, 0.0) for each in memory)
        bent = jnp.tanh(drive + recurrent @ hidden)
        into, forget, candidate, out = opened(bent)
        cell = forget * cell + into * candidate
        memory = Memory(out * jnp.tanh(cell), cell)
        return memory, (*memory, bent)

    drives = jnp.moveaxis(driven, 1, 0)
    last, (hidden, cell, bent) = jax.lax.scan(step, memory, (drives, kept))
    return (hidden, last), (recurrent, kept, memory, hidden, cell, bent)


def opened(bent: Array) -> tuple[Array, Array, Array, Array]:
    """The gates (..., H, B) input, forget, candidate and output, of their tanh (..., 4H, B)."""
    into, forget, candidate, out = jnp.split(bent, 4, axis=-2)
    return 0.5 + 0.5 * into, 0.5 + 0.5 * forget, candidate, 0.5 + 0.5 * out


def unroll_backward(
    saved: tuple[Any, ...], pull: tuple[Array, Memory]
) -> tuple[Array, Array, Array, Memory]:
    """Written out: left to itself the backward scan adds to the gradient of the recurrent weights
    at every step, where one product after the scan will do."""
    recurrent, kept, memory, hidden, cell, bent = saved
    pull_hidden, pull_last = pull
    _, gates, batch = bent.shape
    # Turned once: on a CPU a product with weights to be turned takes seven times as long.
    turned = jax.lax.optimization_barrier(recurrent.T)

    def before(first: Array, after: Array) -> Array:
        return jnp.concatenate([first[None], after[:-1]]) * kept[:, None]

    # All that does not depend on later steps, for all steps at once: how far a pull at what is
    # shown reaches the cell, how far one at the cell reaches that before, and both the gates.
    into, forget, candidate, out = opened(bent)
    shown = jnp.tanh(cell)
    inward = out * (1.0 - shown * shown)
    back = forget * kept[:, None]
    slopes = jnp.stack(
        [
            2.0 * candidate * into * (1.0 - into),
            2.0 * before(memory.cell, cell) * forget * (1.0 - forget),
            into * (1.0 - candidate * candidate),
            2.0 * shown * out * (1.0 - out),
        ],
        axis=1,
    )
    is_out = jnp.arange(4)[:, None, None] == 3

    def step(carry: Memory, given: tuple[Array, ...]) -> tuple[Memory, Array]:
        above, keep, inward, back, slopes = given
        on_hidden = carry.hidden + above
        on_cell = carry.cell + on_hidden * inward
        # A choice, not four parts put together: that copies number by number.
        on_gates = (jnp.where(is_out, on_hidden, on_cell) * slopes).reshape(gates, batch)
        return Memory((turned @ on_gates) * keep, on_cell * back), on_gates

    start, on_gates = jax.lax.scan(
        step, pull_last, (pull_hidden, kept, inward, back, slopes), reverse=True
    )
    on_driven = jnp.moveaxis(on_gates, 1, 0)
    earlier = jnp.moveaxis(before(memory.hidden, hidden), 1, 0)
    on_recurrent = on_driven.reshape(gates, -1) @ earlier.reshape(len(earlier), -1).T
    return on_recurrent, on_driven, jnp.zeros_like(kept), start


unroll.defvjp(unroll_forward, unroll_backward)


class Recurrent(eqx.Module):
    """Sequences to a Head of their steps, time and batch joined into one axis (T · B)."""

    torso: MLP | Image
    lstm: LSTM
    head: eqx.Module
    actions: int = eqx.field(static=True)
    units: int = eqx.field(static=True)

    def start(self, batch: int) -> Memory:
        return Memory.empty(self.units, batch)

    def unroll(self, seen: Seen, memory: Memory) -> tuple[Array, Memory]:
        """What is remembered after every step (T, H, B), and the memory at the end."""
        steps, batch = seen.first.shape
        x = self.features(seen.obs.reshape(steps * batch, *seen.obs.shape[2:]))
        action = ops.one_hot(seen.last_action.reshape(-1), self.actions).T.astype(x.dtype)
        reward = jnp.tanh(seen.last_reward.reshape(1, -1))
        x = jnp.concatenate([x, action, reward]).reshape(-1, steps, batch)
        return self.lstm(x, seen.first, memory)

    def features(self, obs: Array) -> Array:
        """(N, ...) to (F, N); pictures a few at a time, their convolutions made again for the
        gradient: those of a whole batch of episodes would fill any memory."""
        large = isinstance(self.torso, Image) and math.prod(obs.shape[1:]) > PICTURE
        if not large or len(obs) <= FRAMES_AT_ONCE:
            return self.torso(jnp.moveaxis(obs, 0, -1))
        parts = -(-len(obs) // FRAMES_AT_ONCE)
        padding = [(0, parts * FRAMES_AT_ONCE - len(obs)), *[(0, 0)] * (obs.ndim - 1)]
        frames = jnp.pad(obs, padding).reshape(parts, FRAMES_AT_ONCE, *obs.shape[1:])
        torso = jax.checkpoint(lambda part: self.torso(jnp.moveaxis(part, 0, -1)))
        found = jax.lax.map(torso, frames)  # (parts, F, FRAMES_AT_ONCE)
        return jnp.moveaxis(found, 0, 1).reshape(found.shape[1], -1)[:, : len(obs)]

    def heads(self, remembered: Array, key: Array) -> Head:
        """From (T, H, B) to a Head of T · B steps."""
        flat = jnp.moveaxis(remembered, 1, 0).reshape(remembered.shape[1], -1)
        return self.head(flat, key)  # type: ignore[operator]

    def __call__(self, seen: Seen, memory: Memory, key: Array) -> tuple[Head, Memory]:
        remembered, memory = self.unroll(seen, memory)
        return self.heads(remembered, key), memory
