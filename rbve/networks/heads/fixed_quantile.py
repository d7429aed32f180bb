"""Values at fixed quantile levels."""

import equinox as eqx
import jax.numpy as jnp

from rbve.networks.layers import Linear
from rbve.types import Array, Head


class FixedQuantile(eqx.Module):
    """Values at the levels (i + ½) / N, as in QR-DQN (Dabney et al., 2018); q is their mean."""

    out: Linear
    quantiles: int = eqx.field(static=True)

    def __init__(self, features: int, actions: int, key: Array, quantiles: int = 32) -> None:
        self.out = Linear(features, quantiles * actions, key)
        self.quantiles = quantiles

    def __call__(self, x: Array, key: Array) -> Head:
        parts = self.out(x).reshape(self.quantiles, -1, x.shape[-1])  # (N, A, B)
        levels = (jnp.arange(self.quantiles, dtype=x.dtype) + 0.5) / self.quantiles
        q = jnp.mean(parts, axis=0).T
        return Head(
            q=q,
            ranked=q,
            parts=jnp.moveaxis(parts, -1, 0),
            taus=jnp.broadcast_to(levels, (x.shape[-1], self.quantiles)),
        )
