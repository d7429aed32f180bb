"""Optimisers, a file each, or in an algorithm's own file. A file's presence is its registration.

A file holds

    optimiser   (options) -> a function from the learning rate to an optax transformation
    FLAT        True where every weight is treated by itself; then all weights come as one vector,
                which is one kernel per step, and not as the network that an algorithm's own
                optimiser sees
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import optax
from jax.flatten_util import ravel_pytree

from rbve.registry import Registry
from rbve.types import Array, Tree

_OPTIMISERS = Registry("optimiser", __name__, __file__)


class _Optimiser(NamedTuple):
    init: Callable[[Array], Tree]  # weights -> state
    step: Callable[[Array, Array, Tree, Array], tuple[Array, Tree]]
    # (weights, gradient, state, learning rate) -> (weights, state)


def make_optimiser(
    chosen: str | Callable[..., Any], options: Any, unravel: Callable[[Array], Any]
) -> _Optimiser:
    """The optimiser of a file here by name, or the function `optimiser` of an algorithm's own.
    `unravel` is from a vector of weights to the network."""
    flat, factory = False, chosen
    if isinstance(factory, str):
        module = _OPTIMISERS.load(factory)
        flat, factory = getattr(module, "FLAT", False), module.optimiser
    make = factory(options)
    shaped = (lambda vector: vector) if flat else unravel

    def init(params: Array) -> Tree:
        return make(0.0).init(shaped(params))

    def step(params: Array, grad: Array, state: Tree, rate: Array) -> tuple[Array, Tree]:
        weights = shaped(params)
        updates, state = make(rate).update(shaped(grad), state, weights)
        moved = optax.apply_updates(weights, updates)
        return moved if flat else ravel_pytree(moved)[0], state

    return _Optimiser(init, step)
