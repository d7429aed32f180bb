"""Deep Q-learning with ranking regularisation, R-DQN (arXiv:2103.09575, section 3.2).

L(θ) = E_D [ (r + γ Q_θ'(s', a*) − Q_θ(s, a))²
             + λ w(s) Σ_{i≠a} max(Q_θ(s, a_i) − Q_θ(s, a) + ν, 0)² ]
a*   = argmax_a Q_θ(s', a)
"""

from __future__ import annotations

from dataclasses import dataclass

from rbve import ops, ranking
from rbve.algorithms import dqn
from rbve.types import Array, Batch, Views

HEAD = "q"
BOOTSTRAP = "state"
Config = ranking.Config


@dataclass(frozen=True)
class Options(ranking.Options):
    double: bool = True  # choose a* with the online network


def loss(
    views: Views, batch: Batch, config: ranking.Config, options: Options, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    value, metrics = dqn.loss(views, batch, dqn.Config(), dqn.Options(options.double), td, key)
    rank, rank_metrics = ranking.penalty(views.now, batch, config, options, td)
    return value + rank, metrics | rank_metrics
