"""Values as a sum of the state's value and the actions' advantages."""

import equinox as eqx
import jax
import jax.numpy as jnp

from rbve.networks.heads.q import values
from rbve.networks.layers import Linear
from rbve.types import Array, Head


class Dueling(eqx.Module):
    """Q = V + A − mean A, each from a hidden layer of its own (Wang et al., 2016), as in R2D2."""

    hidden: Linear  # both streams side by side
    value: Linear
    advantage: Linear
    log_alpha: Array | None

    def __init__(self, features: int, actions: int, key: Array, bounded: bool = False) -> None:
        key_hidden, key_value, key_advantage = jax.random.split(key, 3)
        self.hidden = Linear(features, 2 * features, key_hidden)
        self.value = Linear(features, 1, key_value)
        self.advantage = Linear(features, actions, key_advantage)
        self.log_alpha = jnp.zeros(1) if bounded else None

    def __call__(self, x: Array, key: Array) -> Head:
        on_value, on_advantage = jnp.split(jax.nn.relu(self.hidden(x)), 2)
        advantage = self.advantage(on_advantage)
        q = (self.value(on_value) + advantage - jnp.mean(advantage, axis=0, keepdims=True)).T
        return values(q, self.log_alpha)
