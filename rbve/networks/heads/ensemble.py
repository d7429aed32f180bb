"""Many values per action, from linear heads on one torso."""

import equinox as eqx
import jax.numpy as jnp
from jax.tree_util import Partial

from rbve.networks.layers import Linear
from rbve.types import Array, Head


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
        mix = Partial(_mixture, self.out.weight, self.out.bias, x)
        q = mix(jnp.full(self.heads, 1.0 / self.heads))
        return Head(q=q, ranked=q, parts=jnp.moveaxis(parts, -1, 0), mix=mix)


def _mixture(weight: Array, bias: Array, x: Array, alpha: Array) -> Array:
    """Values (B, A) of Σ α_k head_k, the weights (K·A, F) mixed before they meet x (F, B)."""
    count = alpha.shape[0]
    mixed = jnp.tensordot(alpha, weight.reshape(count, -1, weight.shape[-1]), 1)
    return (mixed @ x + (alpha @ bias.reshape(count, -1))[:, None]).T
