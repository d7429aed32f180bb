"""One value of the state."""

import equinox as eqx

from rbve.networks.layers import Linear
from rbve.types import Array


class Value(eqx.Module):
    """V(s), in `Head.extra["v"]`; it stands beside a head that speaks of actions."""

    out: Linear

    def __init__(self, features: int, actions: int, key: Array) -> None:
        self.out = Linear(features, 1, key)

    def __call__(self, x: Array, key: Array) -> dict[str, Array]:
        return {"v": self.out(x)[0]}
