"""Conservative Q-learning, CQL(H) with a fixed α (Kumar et al., 2020), on double DQN.

L(θ) = L_DDQN(θ) + α · E_D [ log Σ_a exp Q_θ(s, a) − Q_θ(s, a_D) ]
"""

from __future__ import annotations

from typing import NamedTuple

import jax

from rbve import ops
from rbve.algorithms import dqn
from rbve.types import Array, Batch, Views

HEAD = "q"
BOOTSTRAP = "state"
Options = dqn.Options


class Config(NamedTuple):
    alpha: float = 0.01  # weight of the conservative term (the paper's Atari value)


def loss(
    views: Views, batch: Batch, config: Config, options: dqn.Options, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    value, metrics = dqn.loss(views, batch, dqn.Config(), options, td, key)
    soft_max = jax.nn.logsumexp(ops.mask(views.now.q, batch.legal), axis=-1)
    conservative = config.alpha * (soft_max - ops.select(views.now.q, batch.action))
    return value + conservative, metrics | {"conservative_loss": conservative}
