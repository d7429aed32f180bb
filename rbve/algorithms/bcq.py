"""Discrete batch-constrained Q-learning, BCQ (Fujimoto et al., 2019).

    L(θ) = L_TD(θ) − E_D [ log π(a | s) ] + c · E_D [ mean_a logits(s)² ]
    a*   = argmax over { a : π(a | s') / max_b π(b | s') > τ } of Q_θ(s', a)

The same filter acts at deployment. The likeliest action always passes, so no row is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from rbve import ops
from rbve.types import Array, Batch, Head, Tower, Views

HEAD = ("q", Tower("policy"))  # a torso of its own for the policy, as in the public code
BOOTSTRAP = "state"
_FORBIDDEN = -1e8


class Config(NamedTuple):
    threshold: float = 0.3  # τ, smallest π(a)/max π that is allowed
    logit_penalty: float = 1e-2  # c


@dataclass(frozen=True)
class Options:
    double: bool = True  # choose a* with the online network


def loss(
    views: Views, batch: Batch, config: Config, options: Options, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    logits = views.now.logits
    assert logits is not None
    q = ops.select(views.now.q, batch.action)
    chooser = views.next if options.double else views.target
    best = jnp.argmax(scores(chooser, batch.next_legal, config, options), axis=-1)
    next_q = ops.select(views.target.q, best)
    td_loss = td(q, batch.reward, batch.discount, next_q)
    log_policy = jax.nn.log_softmax(ops.mask(logits, batch.legal), axis=-1)
    imitation = -ops.select(log_policy, batch.action)
    legal = jnp.ones_like(logits) if batch.legal is None else batch.legal
    size = jnp.sum(jnp.where(legal, ops.square(logits), 0.0), -1) / jnp.sum(legal, -1)
    value = td_loss + imitation + config.logit_penalty * size
    return value, {"td_loss": td_loss, "q": q, "imitation_loss": imitation}


def scores(head: Head, legal: Array | None, config: Config, options: Options) -> Array:
    assert head.logits is not None
    log_policy = jax.nn.log_softmax(ops.mask(head.logits, legal), axis=-1)
    ratio = jnp.exp(log_policy - jnp.max(log_policy, axis=-1, keepdims=True))
    # ≥ 1 keeps the likeliest action even at τ = 1.
    allowed = (ratio > config.threshold) | (ratio >= 1.0)
    return ops.mask(jnp.where(allowed, head.q, _FORBIDDEN), legal)
