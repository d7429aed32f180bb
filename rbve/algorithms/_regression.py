"""Regression of a number per decision on state and action, by the trainer of all algorithms.

    L(θ) = E_D [ (y − Q_θ(s, a))² ]

y comes in the first column of Dataset.policy, in the row after its decision, where it is read: so
observations and rewards, which a memory sees, stay those of the log.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from rbve import ops
from rbve.algorithms import NoOptions
from rbve.types import Array, Batch, Views

HEAD = "q"
BOOTSTRAP = "state"


class Config(NamedTuple):
    pass


def loss(
    views: Views, batch: Batch, config: Config, options: NoOptions, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    if batch.next_policy is None:
        raise ValueError("a regression needs its numbers in the data")
    q = ops.select(views.now.q, batch.action)
    nothing = jnp.zeros_like(q)
    td_loss = td(q, batch.next_policy[:, 0], nothing, nothing)
    return td_loss, {"td_loss": td_loss, "q": q}
