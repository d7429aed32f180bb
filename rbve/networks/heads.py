"""Heads: features (F, B) and a key to what the network says, as a Head of (B, A) arrays.

A head's keyword arguments are filled from the algorithm's Options of the same name.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.tree_util import Partial

from rbve import ops
from rbve.networks.layers import Linear
from rbve.types import Array, Head


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


class Dueling(eqx.Module):
    """Q = V + A − mean A, each from a hidden layer of its own (Wang et al., 2016), as in R2D2."""

    hidden: Linear  # both streams side by side
    value: Linear
    advantage: Linear
    log_alpha: Array | None

    def __init__(
        self, features: int, actions: int, key: Array, width: int, bounded: bool = False
    ) -> None:
        key_hidden, key_value, key_advantage = jax.random.split(key, 3)
        self.hidden = Linear(features, 2 * width, key_hidden)
        self.value = Linear(width, 1, key_value)
        self.advantage = Linear(width, actions, key_advantage)
        self.log_alpha = jnp.zeros(1) if bounded else None

    def __call__(self, x: Array, key: Array) -> Head:
        on_value, on_advantage = jnp.split(jax.nn.relu(self.hidden(x)), 2)
        advantage = self.advantage(on_advantage)
        q = (self.value(on_value) + advantage - jnp.mean(advantage, axis=0, keepdims=True)).T
        return values(q, self.log_alpha)


def values(q: Array, log_alpha: Array | None) -> Head:
    """Q as it is, or Q = α·tanh(Q̂), where the ranking acts on Q̂."""
    if log_alpha is None:
        return Head(q=q, ranked=q)
    ranked = jnp.tanh(q)
    return Head(q=jnp.exp(log_alpha) * ranked, ranked=ranked)


class Policy(eqx.Module):
    """Behaviour logits; argmax acts on them, but they are not values."""

    out: Linear

    def __init__(self, features: int, actions: int, key: Array) -> None:
        self.out = Linear(features, actions, key)

    def __call__(self, x: Array, key: Array) -> Head:
        logits = self.out(x).T
        return Head(q=logits, ranked=logits, logits=logits)


class Ensemble(eqx.Module):
    """K value heads on one torso. They are linear, so a mixture of them is one head of mixed
    weights: hundreds of heads cost little more than one where only a mixture is asked for."""

    out: Linear
    heads: int = eqx.field(static=True)

    def __init__(self, features: int, actions: int, key: Array, heads: int = 200) -> None:
        self.out = Linear(features, heads * actions, key)
        self.heads = heads

    def __call__(self, x: Array, key: Array) -> Head:
        parts = self.out(x).reshape(self.heads, -1, x.shape[-1])  # (K, A, B)
        mix = Partial(mixture, self.out.weight, self.out.bias, x)
        q = mix(jnp.full(self.heads, 1.0 / self.heads))
        return Head(q=q, ranked=q, parts=jnp.moveaxis(parts, -1, 0), mix=mix)


def mixture(weight: Array, bias: Array, x: Array, alpha: Array) -> Array:
    """Values (B, A) of Σ α_k head_k, the weights (K·A, F) mixed before they meet x (F, B)."""
    count = alpha.shape[0]
    mixed = jnp.tensordot(alpha, weight.reshape(count, -1, weight.shape[-1]), 1)
    return (mixed @ x + (alpha @ bias.reshape(count, -1))[:, None]).T


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
        """Values (B, N, A) at levels taus (N, B)."""
        count, batch = taus.shape
        waves = jnp.arange(1, self.cosines + 1, dtype=x.dtype)
        cosine = ops.cos_pi(waves[:, None] * taus.reshape(1, -1))
        embedding = jax.nn.relu(self.embed(cosine)).reshape(-1, count, batch)
        mixed = (x[:, None, :] * embedding).reshape(x.shape[0], -1)
        return jnp.transpose(self.out(mixed).reshape(-1, count, batch), (2, 1, 0))

    def __call__(self, x: Array, key: Array) -> Head:
        taus = jax.random.uniform(key, (self.samples + self.act_samples, x.shape[-1]), x.dtype)
        parts = self.at(x, taus[: self.samples])
        q = jnp.mean(self.at(x, taus[self.samples :]), axis=1)
        return Head(q=q, ranked=q, parts=parts, taus=taus[: self.samples].T)
