"""Implicit quantile networks, IQN (Dabney et al., 2018).

    L(θ) = E_D [ Σ_i mean_j ρ_{τ_i}( r + γ Z_{τ'_j}(s', a*) − Z_{τ_i}(s, a) ) ]
    a*   = argmax_a of the target network's mean over K samples

ρ is the quantile Huber loss with κ = 1; τ, τ' ~ U(0, 1). Acts on the mean of K samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from rbve import ops
from rbve.types import Array, Batch, Views

HEAD = "quantile"
BOOTSTRAP = "state"


class Config(NamedTuple):
    kappa: float = 1.0  # κ, where the quantile Huber loss turns linear


@dataclass(frozen=True)
class Options:
    samples: int = 64  # N = N', quantile samples per state
    act_samples: int = 32  # K, samples behind each greedy choice
    cosines: int = 64  # size of the embedding of τ


def loss(
    views: Views, batch: Batch, config: Config, options: Options, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    now, target = views.now.parts, views.target.parts
    taus = views.now.taus
    assert now is not None
    assert target is not None
    assert taus is not None
    best = jnp.argmax(ops.mask(views.target.q, batch.next_legal), axis=-1)
    predicted = ops.select(now, batch.action[..., None])  # (B, N)
    next_value = ops.select(target, best[..., None])  # (B, N')
    goal = td.target(batch.reward[..., None], batch.discount[..., None], next_value)
    error = goal[..., None, :] - predicted[..., :, None]  # (B, N, N')
    penalty = ops.quantile_huber(error, taus[..., :, None], config.kappa)
    td_loss = jnp.sum(jnp.mean(penalty, axis=-1), axis=-1)
    return td_loss, {"td_loss": td_loss, "q": jnp.mean(predicted, axis=-1)}
