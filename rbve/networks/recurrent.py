"""The memory of a network (R2D2, Kapturowski et al., 2019): an LSTM over the steps of sequences.

Time leads and the batch is the minor axis: (T, features, B). The memory is emptied at the first
step of every episode, wherever in a sequence that is.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from rbve.networks.layers import Linear, truncated_normal
from rbve.types import Array


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
    def empty(units: int, batch: int) -> "Memory":
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
        """Features (F, T, B) to hidden states after every step (T, H, B), and the last memory."""
        features, steps, batch = x.shape
        # σ(x) = ½ + ½ tanh(½x): with the inputs of the three σ halved, one tanh serves all gates,
        # in half the time of a function for each.
        halves = jnp.array([0.5, 0.5, 1.0, 0.5]).repeat(self.recurrent.shape[1])
        # Rows are scaled in place: for transposed weights the compiler would transpose the gradient
        # as well, and back.
        inputs, recurrent = self.inputs.weight * halves[:, None], self.recurrent * halves[:, None]
        driven = inputs @ x.reshape(features, -1) + (self.inputs.bias * halves)[:, None]
        driven = driven.reshape(-1, steps, batch)
        return unroll(recurrent, driven, 1.0 - first.astype(x.dtype), memory)


@jax.custom_vjp
def unroll(recurrent: Array, driven: Array, kept: Array, memory: Memory) -> tuple[Array, Memory]:
    """`driven` (4H, T, B) is what the inputs add to the gates; `kept` (T, B) is 0 where the memory
    is emptied before the step. Weights and `driven` are halved except for the candidate's."""
    return unroll_forward(recurrent, driven, kept, memory)[0]


def unroll_forward(
    recurrent: Array, driven: Array, kept: Array, memory: Memory
) -> tuple[tuple[Array, Memory], tuple[Any, ...]]:
    def step(memory: Memory, given: tuple[Array, Array]) -> tuple[Memory, tuple[Array, ...]]:
        drive, keep = given
        # Selected, not multiplied by 0, which would keep values that are not finite.
        hidden, cell = (jnp.where(keep > 0, each, 0.0) for each in memory)
        bent = jnp.tanh(drive + recurrent @ hidden)
        into, forget, candidate, out = _gates(bent)
        cell = forget * cell + into * candidate
        memory = Memory(out * jnp.tanh(cell), cell)
        return memory, (*memory, bent)

    drives = jnp.moveaxis(driven, 1, 0)
    last, (hidden, cell, bent) = jax.lax.scan(step, memory, (drives, kept))
    return (hidden, last), (recurrent, kept, memory, hidden, cell, bent)


def _gates(bent: Array) -> tuple[Array, Array, Array, Array]:
    """The gates (..., H, B) input, forget, candidate and output, of their tanh (..., 4H, B)."""
    into, forget, candidate, out = jnp.split(bent, 4, axis=-2)
    return 0.5 + 0.5 * into, 0.5 + 0.5 * forget, candidate, 0.5 + 0.5 * out


def _unroll_backward(
    saved: tuple[Any, ...], pull: tuple[Array, Memory]
) -> tuple[Array, Array, Array, Memory]:
    """Written by hand: the derived backward scan would add to the gradient of the recurrent weights
    at every step, where one product after the scan is enough."""
    recurrent, kept, memory, hidden, cell, bent = saved
    pull_hidden, pull_last = pull
    _, gates, batch = bent.shape
    # Transposed once: on a CPU a product that transposes its weights takes seven times as long.
    transposed = jax.lax.optimization_barrier(recurrent.T)

    def before(first: Array, after: Array) -> Array:
        return jnp.concatenate([first[None], after[:-1]]) * kept[:, None]

    # Derivatives that do not depend on later steps, for all steps at once: of the output by the
    # cell, of the cell by the one before, and of both by the gates.
    into, forget, candidate, out = _gates(bent)
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
        # Selected, not concatenated of four parts, which would copy number by number.
        on_gates = (jnp.where(is_out, on_hidden, on_cell) * slopes).reshape(gates, batch)
        return Memory((transposed @ on_gates) * keep, on_cell * back), on_gates

    start, on_gates = jax.lax.scan(
        step, pull_last, (pull_hidden, kept, inward, back, slopes), reverse=True
    )
    on_driven = jnp.moveaxis(on_gates, 1, 0)
    earlier = jnp.moveaxis(before(memory.hidden, hidden), 1, 0)
    on_recurrent = on_driven.reshape(gates, -1) @ earlier.reshape(len(earlier), -1).T
    return on_recurrent, on_driven, jnp.zeros_like(kept), start


unroll.defvjp(unroll_forward, _unroll_backward)
