"""What networks say about a batch: the one place that knows whether it is made of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rbve.networks.recurrent import Memory, Seen
from rbve.types import Array, Head, Views


class Pairs(NamedTuple):
    """Observations of transitions, and of their bootstrap states."""

    obs: Array  # (B, ...)
    next_obs: Array  # (B, ...)


class Sequences(NamedTuple):
    """Steps in their order; the first `burn_in` only warm the memory, then `train` are trained."""

    seen: Seen  # (L, B), L ≥ burn_in + train
    later: Array  # (train, B) int32, the step each trained one bootstraps from


def of_pairs(online: Any, target: Any, inputs: Pairs, keys: Sequence[Array]) -> Views:
    now, later, target_draw = keys
    return Views(
        now=online(inputs.obs, now),
        next=jax.lax.stop_gradient(online)(inputs.next_obs, later),
        target=target(inputs.next_obs, target_draw),
    )


def of_sequences(
    online: Any,
    target: Any,
    inputs: Sequences,
    burn_in: int,
    keys: Sequence[Array],
    memory: Memory | None = None,
) -> Views:
    """Heads of train · B steps: the memory is unrolled once per network, then looked up.

    It starts as `memory`, or empty.
    """
    now, later, target_draw = keys
    mine, theirs = (remembered(each, inputs.seen, burn_in, memory) for each in (online, target))
    trained, batch = inputs.later.shape
    after = inputs.later - burn_in
    said = online.heads(mine, now)
    if said.parts is None:  # what it says of a step does not depend on a draw: say it once
        return Views(
            now=jax.tree.map(lambda column: column[: trained * batch], said),
            next=jax.lax.stop_gradient(of_steps(said, after)),
            target=of_steps(target.heads(theirs, target_draw), after),
        )
    frozen = jax.lax.stop_gradient(online)
    return Views(
        now=online.heads(mine[:trained], now),
        next=frozen.heads(at(jax.lax.stop_gradient(mine), after), later),
        target=target.heads(at(theirs, after), target_draw),
    )


def of_steps(head: Head, step: Array) -> Head:
    """The rows of a Head of L · B steps that belong to steps (T, B)."""
    rows = (step * step.shape[1] + jnp.arange(step.shape[1])).reshape(-1)
    return jax.tree.map(lambda column: column.at[rows].get(mode="promise_in_bounds"), head)


def remembered(network: Any, seen: Seen, burn_in: int, memory: Memory | None = None) -> Array:
    """After every step from `burn_in` on (L − burn_in, H, B); no gradient reaches those before."""
    memory = network.start(seen.first.shape[1]) if memory is None else memory
    if burn_in:
        warming = Seen(*(column[:burn_in] for column in seen))
        memory = jax.lax.stop_gradient(network.unroll(warming, memory)[1])
    return network.unroll(Seen(*(column[burn_in:] for column in seen)), memory)[0]


def at(values: Array, step: Array) -> Array:
    """values (L, H, B) at steps (T, B): (T, H, B)."""
    return jnp.take_along_axis(values, step[:, None, :], axis=0, mode="promise_in_bounds")
