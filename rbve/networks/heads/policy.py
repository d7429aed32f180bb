"""Logits of the behaviour policy."""

import equinox as eqx

from rbve.networks.layers import Linear
from rbve.types import Array, Head


class Policy(eqx.Module):
    """Behaviour logits; argmax acts on them, but they are not values."""

    out: Linear

    def __init__(self, features: int, actions: int, key: Array) -> None:
        self.out = Linear(features, actions, key)

    def __call__(self, x: Array, key: Array) -> Head:
        logits = self.out(x).T
        return Head(q=logits, ranked=logits, logits=logits)
