"""One value per action."""

import equinox as eqx
import jax
import jax.numpy as jnp

from rbve.networks.layers import Linear
from rbve.types import Array, Head

WITH_MEMORY = "dueling"  # as in R2D2


class Q(eqx.Module):
    """One value per action; `bounded` learns Q = α·tanh(Q̂), α > 0 a single learnt scale."""

    out: Linear
    log_alpha: Array | None

    def __init__(self, features: int, actions: int, key: Array, bounded: bool = False) -> None:
        self.out = Linear(features, actions, key)
        self.log_alpha = jnp.zeros(1) if bounded else None

    def __call__(self, x: Array, key: Array) -> Head:
        # The barrier keeps the batch minor in the backward product too: 4% of an update on CPU.
        return values(jax.lax.optimization_barrier(self.out(x)).T, self.log_alpha)


def values(q: Array, log_alpha: Array | None) -> Head:
    """Q itself, or Q = α·tanh(Q̂), where the ranking term compares Q̂."""
    if log_alpha is None:
        return Head(q=q, ranked=q)
    ranked = jnp.tanh(q)
    return Head(q=jnp.exp(log_alpha) * ranked, ranked=ranked)
