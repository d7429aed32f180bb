"""Deep Q-learning, double by default (van Hasselt et al., 2016).

L(θ) = E_D [ (r + γ Q_θ'(s', a*) − Q_θ(s, a))² ]
a*   = argmax_a Q_θ(s', a)      (double: chosen by the online network)
a*   = argmax_a Q_θ'(s', a)     (single)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from rbve import ops
from rbve.types import Array, Batch, Views

HEAD = "q"
BOOTSTRAP = "state"


class Config(NamedTuple):
    pass


@dataclass(frozen=True)
class Options:
    double: bool = True  # choose a* with the online network


def loss(
    views: Views, batch: Batch, config: Config, options: Options, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    q = ops.select(views.now.q, batch.action)
    chooser = views.next if options.double else views.target
    best = jnp.argmax(ops.mask(chooser.q, batch.next_legal), axis=-1)
    next_q = ops.select(views.target.q, best)
    td_loss = td(q, batch.reward, batch.discount, next_q)
    return td_loss, {"td_loss": td_loss, "q": q}
