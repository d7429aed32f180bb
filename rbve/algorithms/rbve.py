"""Regularized behaviour value estimation, R-BVE (arXiv:2103.09575, section 3).

    L(θ) = E_D [ (r + γ Q_θ'(s', a') − Q_θ(s, a))²
                 + λ w(s) Σ_{i≠a} max(Q_θ(s, a_i) − Q_θ(s, a) + ν, 0)² ]

Behaviour value estimation plus the ranking term of rbve/ranking.py.
"""

from __future__ import annotations

from rbve import ops, ranking
from rbve.algorithms import NoOptions, bve
from rbve.types import Array, Batch, Views

HEAD = "q"
BOOTSTRAP = "pair"
Config = ranking.Config
Options = ranking.Options


def loss(
    views: Views,
    batch: Batch,
    config: ranking.Config,
    options: ranking.Options,
    td: ops.TD,
    key: Array,
) -> tuple[Array, dict[str, Array]]:
    value, metrics = bve.loss(views, batch, bve.Config(), NoOptions(), td, key)
    rank, rank_metrics = ranking.penalty(views.now, batch, config, options, td)
    return value + rank, metrics | rank_metrics
