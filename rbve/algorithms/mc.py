"""Monte Carlo learning (arXiv:2103.09575, section 5.2).

L(θ) = E_D [ (V̂(s) − Q_θ(s, a))² ],   V̂ the discounted reward-to-go of the logged episode
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from rbve import ops
from rbve.algorithms import NoOptions
from rbve.types import Array, Batch, Views

HEAD = "q"
BOOTSTRAP = "return"


class Config(NamedTuple):
    pass


def loss(
    views: Views, batch: Batch, config: Config, options: NoOptions, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    q = ops.select(views.now.q, batch.action)
    td_loss = td(q, batch.g, jnp.zeros_like(batch.g), jnp.zeros_like(batch.g))
    return td_loss, {"td_loss": td_loss, "q": q}
