"""Implicit Q-learning, IQL (Kostrikov et al., 2022), for discrete actions.

    L(θ) = E_D [ (r + γ V_θ(s') − Q_θ(s, a))² + |τ − 1[A < 0]| · A² − w · log π_θ(a | s) ]
    A    = Q_θ'(s, a) − V_θ(s)
    w    = min(exp(β A), c)

V is an expectile of Q over the actions of the data: the nearer τ is to 1, the nearer to the best of
them, and no other action is asked for. The target and w carry no gradient. The policy acts. Q is
one network, as everywhere here; the public code takes the smaller of two.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rbve import ops
from rbve.algorithms import NoOptions
from rbve.types import Array, Batch, Head, Tower, Views

HEAD = ("q", Tower("value"), Tower("policy"))  # networks of their own, as in the public code
BOOTSTRAP = "state"


class Config(NamedTuple):
    expectile: float = 0.7  # τ (the paper's for locomotion; .9 where good episodes are rare)
    inverse_temperature: float = 3.0  # β (the paper's for locomotion; others .5 and 10); 0 = BC
    cap: float = 100.0  # c, largest weight (public code)


def loss(
    views: Views, batch: Batch, config: Config, options: NoOptions, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    logits, extra, next_extra = views.now.logits, views.now.extra, views.next.extra
    assert logits is not None
    assert extra is not None
    assert next_extra is not None
    q = ops.select(views.now.q, batch.action)
    td_loss = td(q, batch.reward, batch.discount, next_extra["v"])
    v, target_q = extra["v"], ops.select(views.target_now.q, batch.action)
    error = target_q - v
    value_loss = jnp.abs(config.expectile - (error < 0)) * ops.square(error)
    advantage = jax.lax.stop_gradient(td.value(target_q) - td.value(v))
    weight = jnp.minimum(jnp.exp(config.inverse_temperature * advantage), config.cap)
    log_policy = jax.nn.log_softmax(ops.mask(logits, batch.legal), axis=-1)
    policy_loss = -weight * ops.select(log_policy, batch.action)
    metrics = {"td_loss": td_loss, "q": q, "value_loss": value_loss, "policy_loss": policy_loss}
    clipped = (weight >= config.cap).astype(weight.dtype)
    return td_loss + value_loss + policy_loss, metrics | {"weight_clipped": clipped}


def scores(head: Head, legal: Array | None, config: Config, options: NoOptions) -> Array:
    assert head.logits is not None
    return ops.mask(head.logits, legal)
