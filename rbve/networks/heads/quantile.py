"""Values at sampled quantile levels."""

import equinox as eqx
import jax
import jax.numpy as jnp

from rbve import ops
from rbve.networks.layers import Linear
from rbve.types import Array, Head


class Quantile(eqx.Module):
    """Values at sampled quantile levels: parts from N samples, q from K further ones."""

    embed: Linear
    out: Linear
    samples: int = eqx.field(static=True)
    act_samples: int = eqx.field(static=True)
    cosines: int = eqx.field(static=True)

    def __init__(
        self,
        features: int,
        actions: int,
        key: Array,
        samples: int = 64,
        act_samples: int = 32,
        cosines: int = 64,
    ) -> None:
        key_embed, key_out = jax.random.split(key)
        self.embed = Linear(cosines, features, key_embed)
        self.out = Linear(features, actions, key_out)
        self.samples, self.act_samples, self.cosines = samples, act_samples, cosines

    def at(self, x: Array, taus: Array) -> Array:
        """Values (B, N, A) at levels taus (N, B), or (N, 1) for all rows alike."""
        count, batch = taus.shape
        waves = jnp.arange(1, self.cosines + 1, dtype=x.dtype)
        cosine = ops.cos_pi(waves[:, None] * taus.reshape(1, -1))
        embedding = jax.nn.relu(self.embed(cosine)).reshape(-1, count, batch)
        mixed = (x[:, None, :] * embedding).reshape(x.shape[0], -1)
        return jnp.transpose(self.out(mixed).reshape(-1, count, x.shape[-1]), (2, 1, 0))

    def __call__(self, x: Array, key: Array) -> Head:
        return self._of(x, self._levels(key, x.shape[-1], x))

    def acting(self, x: Array, key: Array) -> Head:
        """At the same levels for every row: decisions do not depend on the rows beside them."""
        return self._of(x, self._levels(key, 1, x))

    def _levels(self, key: Array, rows: int, x: Array) -> Array:
        return jax.random.uniform(key, (self.samples + self.act_samples, rows), x.dtype)

    def _of(self, x: Array, taus: Array) -> Head:
        parts = self.at(x, taus[: self.samples])
        q = jnp.mean(self.at(x, taus[self.samples :]), axis=1)
        levels = jnp.broadcast_to(taus[: self.samples].T, (x.shape[-1], self.samples))
        return Head(q=q, ranked=q, parts=parts, taus=levels)
