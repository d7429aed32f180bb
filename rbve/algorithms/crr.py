"""Critic-regularised regression, CRR (Wang et al., 2020), for discrete actions.

    L(θ) = E_D [ (r + γ Σ_b π_θ'(b | s') Q_θ'(s', b) − Q_θ(s, a))² − f(A) · log π_θ(a | s) ]
    A    = Q_θ(s, a) − Σ_b π_θ(b | s) Q_θ(s, b)
    f(A) = min(exp(A / β), c)     (exponential)
    f(A) = 1[A > 0]               (binary)

Sums over all legal actions stand where the paper samples. f carries no gradient. The policy acts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from rbve import ops
from rbve.types import Array, Batch, Head, Tower, Views

HEAD = ("q", Tower("policy"))
BOOTSTRAP = "state"


class Config(NamedTuple):
    beta: float = 1.0  # β, temperature of the exponential filter (paper: 1)
    cap: float = 20.0  # c, its largest weight (paper: 20)


@dataclass(frozen=True)
class Options:
    filter: Literal["exponential", "binary"] = "exponential"  # f; the paper reports both


def loss(
    views: Views, batch: Batch, config: Config, options: Options, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    q = ops.select(views.now.q, batch.action)
    next_value = _policy_value(views.target, batch.next_legal, td)
    td_loss = td(q, batch.reward, batch.discount, td.output(next_value))
    advantage = td.value(q) - _policy_value(views.now, batch.legal, td)
    weight = jax.lax.stop_gradient(_weight(advantage, config, options))
    imitation = -ops.select(_log_policy(views.now, batch.legal), batch.action)
    policy_loss = weight * imitation
    metrics = {"td_loss": td_loss, "q": q, "policy_loss": policy_loss, "weight": weight}
    return td_loss + policy_loss, metrics


def scores(head: Head, legal: Array | None, config: Config, options: Options) -> Array:
    assert head.logits is not None
    return ops.mask(head.logits, legal)


def _log_policy(head: Head, legal: Array | None) -> Array:
    assert head.logits is not None
    return jax.nn.log_softmax(ops.mask(head.logits, legal), axis=-1)


def _policy_value(head: Head, legal: Array | None, td: ops.TD) -> Array:
    """Σ_b π(b | s) Q(s, b), in the units of the rewards."""
    return jnp.sum(jnp.exp(_log_policy(head, legal)) * td.value(head.q), axis=-1)


def _weight(advantage: Array, config: Config, options: Options) -> Array:
    if options.filter == "binary":
        return (advantage > 0).astype(advantage.dtype)
    return jnp.minimum(jnp.exp(advantage / config.beta), config.cap)
