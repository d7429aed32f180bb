"""Munchausen deep Q-learning, M-DQN (Vieillard et al., 2020).

    L(θ) = E_D [ (r + α [τ log π(a | s)]_{l0}^0
                  + γ Σ_b π(b | s') (Q_θ'(s', b) − τ log π(b | s')) − Q_θ(s, a))² ]
    π    = softmax(Q_θ' / τ)

The log-probability of the logged action, cut to [l0, 0], is added to its reward; the value of s' is
τ log Σ_b exp(Q_θ'(s', b) / τ), which is the sum above. τ and l0 are in the units of the rewards. Of
an n-step window only the first decision has the bonus. Acts greedily on Q.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rbve import ops
from rbve.algorithms import NoOptions
from rbve.types import Array, Batch, Head, Views

HEAD = "q"
BOOTSTRAP = "state"


class Config(NamedTuple):
    temperature: float = 0.03  # τ (the paper's for Atari, rewards within ±1)
    alpha: float = 0.9  # α, share of the log-policy that is added (paper: .9)
    clip: float = -1.0  # l0, lowest bonus (paper: −1)


def loss(
    views: Views, batch: Batch, config: Config, options: NoOptions, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    def preferences(head: Head, legal: Array | None) -> Array:
        return ops.mask(td.value(head.q), legal) / config.temperature

    log_policy = jax.nn.log_softmax(preferences(views.target_now, batch.legal), axis=-1)
    bonus = config.temperature * ops.select(log_policy, batch.action)
    bonus = config.alpha * jnp.clip(bonus, config.clip, 0.0)
    soft_max = jax.nn.logsumexp(preferences(views.target, batch.next_legal), axis=-1)
    next_value = td.output(config.temperature * soft_max)
    q = ops.select(views.now.q, batch.action)
    td_loss = td(q, batch.reward + bonus, batch.discount, next_value)
    return td_loss, {"td_loss": td_loss, "q": q, "bonus": bonus}
