"""One run on several devices: the batch is split, all else is the same on each.

The compiler adds the sums over devices, so a loss and its batch statistics (the mean return in the
ranking weights) see the whole batch, and a run gives the same parameters but for rounding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rbve.types import Tree


@dataclass(frozen=True)
class Team:
    devices: tuple[jax.Device, ...]

    def placed(self, *axes: str | None) -> NamedSharding:
        """On all devices alike, or split along the axis called batch."""
        return NamedSharding(Mesh(np.array(self.devices), ("batch",)), PartitionSpec(*axes))

    def split(self, tree: Tree) -> Tree:
        """Inside a program: arrays (B, ...) are worked on in parts."""
        if len(self.devices) == 1:
            return tree
        return jax.lax.with_sharding_constraint(tree, self.placed("batch"))

    def compiled(self, advance: Callable[..., Any], *axes: str | None) -> Callable[..., Any]:
        """advance(state, rows, member, until, sums) as a program; `axes` say how the rows are
        split."""
        program = jax.jit(advance, donate_argnums=(0, 4))
        if len(self.devices) == 1:
            return program

        def run(state: Any, rows: Any, member: Any, until: int, sums: Any) -> Any:
            state, member, sums = self.everywhere((state, member, sums))
            return program(state, jax.device_put(rows, self.placed(*axes)), member, until, sums)

        return run

    def everywhere(self, tree: Tree) -> Tree:
        if len(self.devices) == 1:
            return jax.tree.map(jnp.asarray, tree)
        return jax.device_put(tree, self.placed())

    def home(self, tree: Tree) -> Tree:
        """Back on the first device, where evaluation and files expect it."""
        return tree if len(self.devices) == 1 else jax.device_put(tree, self.devices[0])


def team(count: int, batch_size: int) -> Team:
    """`count` devices from the one this thread uses by default on."""
    local = jax.local_devices()
    chosen = jax.config.values.get("jax_default_device")
    first = local.index(chosen) if isinstance(chosen, jax.Device) else 0
    check(count, len(local) - first, batch_size)
    return Team(tuple(local[first : first + count]))


def check(count: int, available: int, batch_size: int) -> None:
    if not 1 <= count <= available:
        raise ValueError(f"devices must lie in [1, {available}], as many as there are; got {count}")
    if batch_size % count:
        raise ValueError(
            f"a batch of {batch_size} cannot be split evenly over {count} devices; choose another "
            "--batch-size or --devices 1"
        )
