"""Fitted Q evaluation: the value of a given policy, by the trainer of all algorithms.

    L(θ) = E_D [ (r + γ Σ_a' π(a' | s') Q_θ'(s', a') − Q_θ(s, a))² ]

π(· | s') is a column of the data (Dataset.policy), so that anyone's policy can be evaluated.
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
        raise ValueError("fitted Q evaluation needs the probabilities of a policy in the data")
    q = ops.select(views.now.q, batch.action)
    next_v = jnp.sum(batch.next_policy * td.value(views.target.q), axis=-1)
    td_loss = td(q, batch.reward, batch.discount, td.output(next_v))
    return td_loss, {"td_loss": td_loss, "q": q}
