"""What networks with memory say about the steps of sequences."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jax.tree_util import Partial

from rbve.networks.recurrent import Memory, Seen
from rbve.types import Array, Head, Views

Devices = tuple[jax.Device, ...]  # that share the sequences of a batch; none: one has them all


class Steps(NamedTuple):
    """Sequences in time order. The first `burn_in` steps only warm the memory up, the next
    `train` are trained on."""

    seen: Seen  # (L, B), L ≥ burn_in + train
    later: Array  # (train, B) int32, the bootstrap step of each step trained on


def views_of_steps(
    online: Any,
    target: Any,
    steps: Steps,
    burn_in: int,
    keys: Sequence[Array],
    memory: Memory | None = None,
    devices: Devices = (),
) -> Views:
    """Views of train · B steps: each network is unrolled once, from `memory` or an empty one."""
    now, later, target_draw = keys
    mine, theirs = (
        remembered(each, steps.seen, burn_in, memory, devices) for each in (online, target)
    )
    trained, batch = steps.later.shape
    after = steps.later - burn_in
    heads = online.heads(mine, now)
    if heads.parts is None:  # nothing is sampled: one evaluation serves both s and s'
        of_target = target.heads(theirs, target_draw)
        return Views(
            now=_first(heads, count=trained * batch),
            next=jax.lax.stop_gradient(_of_steps(heads, after)),
            target=_of_steps(of_target, after),
            target_at_s=Partial(functools.partial(_first, count=trained * batch), of_target),
        )
    frozen = jax.lax.stop_gradient(online)
    return Views(
        now=online.heads(mine[:trained], now),
        next=frozen.heads(_at(jax.lax.stop_gradient(mine), after), later),
        target=target.heads(_at(theirs, after), target_draw),
        target_at_s=Partial(_heads_at, target, theirs[:trained], target_draw),
    )


def remembered(
    network: Any,
    seen: Seen,
    burn_in: int,
    memory: Memory | None = None,
    devices: Devices = (),
) -> Array:
    """After every step from `burn_in` on (L − burn_in, H, B); no gradient reaches those before."""
    memory = network.start(seen.first.shape[1]) if memory is None else memory

    def unroll(network: Any, seen: Seen, memory: Memory) -> Array:
        if burn_in:
            warming = Seen(*(column[:burn_in] for column in seen))
            memory = jax.lax.stop_gradient(network.unroll(warming, memory)[1])
        return network.unroll(Seen(*(column[burn_in:] for column in seen)), memory)[0]

    if devices:
        # Said outright: left to itself the compiler would join the steps of all devices, since
        # layers take steps and sequences as one axis, and each would work on all of them.
        alike, batch = PartitionSpec(), PartitionSpec(None, "batch")
        unroll = jax.shard_map(
            unroll,
            mesh=Mesh(np.array(devices), ("batch",)),
            in_specs=(alike, batch, batch),
            out_specs=PartitionSpec(None, None, "batch"),
            check_vma=False,
        )
    return unroll(network, seen, memory)


def _first(head: Head, *, count: int) -> Head:
    return jax.tree.map(lambda column: column[:count], head)


def _of_steps(head: Head, step: Array) -> Head:
    """The rows of a Head of L · B steps that belong to steps (T, B)."""
    rows = (step * step.shape[1] + jnp.arange(step.shape[1])).reshape(-1)
    return jax.tree.map(lambda column: column.at[rows].get(mode="promise_in_bounds"), head)


def _heads_at(target: Any, remembered: Array, key: Array) -> Head:
    return target.heads(remembered, jax.random.fold_in(key, 1))  # `key` itself draws for s'


def _at(values: Array, step: Array) -> Array:
    """values (L, H, B) at steps (T, B): (T, H, B)."""
    return jnp.take_along_axis(values, step[:, None, :], axis=0, mode="promise_in_bounds")
