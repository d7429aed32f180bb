"""Conservative Q-learning with the ranking term: an algorithm in one file.

L(θ) = L_CQL(θ) + λ · E_D [ w(s) Σ_{i≠a} max(Q(s, a_i) − Q(s, a) + ν, 0)² ]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rbve import ops, ranking
from rbve.algorithms import cql
from rbve.types import Array, Batch, Views

HEAD = "q"
BOOTSTRAP = "state"


class Config(NamedTuple):  # numbers: may differ between members of one sweep
    alpha: float = 0.01
    lam: float = 0.005
    nu: float = 0.05
    beta: float = 0.5
    cap: float = 20.0


@dataclass(frozen=True)
class Options(ranking.Options):  # choices: fix the compiled program
    double: bool = True


def loss(
    views: Views, batch: Batch, config: Config, options: Options, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    double = cql.Options(options.double)
    value, metrics = cql.loss(views, batch, cql.Config(config.alpha), double, td, key)
    rank, rank_metrics = ranking.penalty(views.now, batch, config, options, td)
    return value + rank, metrics | rank_metrics
