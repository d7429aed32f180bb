"""Prioritised sampling: a tree of sums with wide nodes, kept and searched inside JAX.

Wide nodes suit vector hardware: a search reads one contiguous row of WIDTH sums per level.
Sums are recomputed, never incremented, so they do not drift.
"""

import jax
import jax.numpy as jnp

from rbve.types import Array

WIDTH = 16
Tree = tuple[Array, ...]  # leaves first; each level holds the sums of WIDTH entries below


def empty(capacity: int) -> Tree:
    levels = []
    size = capacity
    while True:
        size = -(-size // WIDTH) * WIDTH
        levels.append(jnp.zeros(size))
        if size == WIDTH:
            return tuple(levels)
        size //= WIDTH


def write(tree: Tree, index: Array, value: Array) -> Tree:
    """Set leaves (K,) to values (K,); equal indices must carry equal values."""
    levels = [tree[0].at[index].set(value)]
    for above in tree[1:]:
        index = index // WIDTH
        sums = jnp.sum(levels[-1].reshape(-1, WIDTH)[index], axis=-1)
        levels.append(above.at[index].set(sums))
    return tuple(levels)


def total(tree: Tree) -> Array:
    return jnp.sum(tree[-1])


def find(tree: Tree, mass: Array) -> Array:
    """The leaf under which each mass (K,) in [0, total) falls."""
    index = jnp.zeros(mass.shape, jnp.int32)
    running_sum = jnp.triu(jnp.ones((WIDTH, WIDTH)))
    for level in reversed(tree):
        # A product with a triangle: on CPU faster than cumsum.
        sums = level.reshape(-1, WIDTH)[index] @ running_sum
        passed = sums <= mass[:, None]
        child = jnp.minimum(jnp.sum(passed, axis=-1), WIDTH - 1)  # rounding at the upper end
        mass = mass - jnp.max(jnp.where(passed, sums, 0.0), axis=-1)
        index = index * WIDTH + child
    return index


def sample(tree: Tree, key: Array, count: int, exponent: float) -> tuple[Array, Array, Array]:
    """Leaves (count,) by priority, which of them are samples, and their importance, 1 at most."""
    whole = total(tree)
    leaf = find(tree, jax.random.uniform(key, (count,)) * whole)
    probability = tree[0][leaf] / whole
    # Rounding may reach a leaf that is no sample: it gets no weight.
    valid = probability > 0
    importance = jnp.where(valid, probability, 1.0) ** -exponent
    importance = jnp.where(valid, importance / jnp.max(jnp.where(valid, importance, 0.0)), 0.0)
    return leaf, valid, importance
