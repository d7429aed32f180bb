"""Conservative Q-learning on quantile regression, QR-DQN with CQL(H) (Kumar et al., 2020).

    L(θ) = E_D [ Σ_i mean_j ρ_{τ_i}( r + γ Z_θ'^j(s', a*) − Z_θ^i(s, a) )
                 + α · ( log Σ_b exp Q_θ(s, b) − Q_θ(s, a) ) ]
    a*   = argmax_a Q_θ'(s', a),   Q = mean_i Z^i,   τ_i = (i + ½) / N

ρ is the quantile Huber loss (QR-DQN, Dabney et al., 2018). Public codes run CQL on it, with an α
that does not compare with that of cql, whose TD loss is another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from rbve import ops
from rbve.types import Array, Batch, Views

HEAD = "fixed_quantile"
BOOTSTRAP = "state"


class Config(NamedTuple):
    alpha: float = 1.0  # weight of the conservative term (public code: 1 on 10% of Atari, 4 on 1%)
    kappa: float = 1.0  # κ, where the quantile Huber loss turns linear (QR-DQN: 1)


@dataclass(frozen=True)
class Options:
    # N. QR-DQN and the public code of CQL have 200, d3rlpy 32: on a CPU N² pairs of quantiles are
    # most of an update.
    quantiles: int = 32


def loss(
    views: Views, batch: Batch, config: Config, options: Options, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    now, target, taus = views.now.parts, views.target.parts, views.now.taus
    assert now is not None
    assert target is not None
    assert taus is not None
    best = jnp.argmax(ops.mask(views.target.q, batch.next_legal), axis=-1)
    predicted = ops.select(now, batch.action[..., None])  # (B, N)
    next_value = ops.select(target, best[..., None])  # (B, N)
    goal = td.target(batch.reward[..., None], batch.discount[..., None], next_value)
    error = goal[..., None, :] - predicted[..., :, None]  # (B, N, N)
    penalty = ops.quantile_huber(error, taus[..., :, None], config.kappa)
    td_loss = jnp.sum(jnp.mean(penalty, axis=-1), axis=-1)
    q = ops.select(views.now.q, batch.action)
    soft_max = jax.nn.logsumexp(ops.mask(views.now.q, batch.legal), axis=-1)
    conservative = config.alpha * (soft_max - q)
    metrics = {"td_loss": td_loss, "q": q, "conservative_loss": conservative}
    return td_loss + conservative, metrics
