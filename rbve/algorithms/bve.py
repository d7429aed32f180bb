"""Behaviour value estimation (arXiv:2103.09575, section 3.1).

    L(θ) = E_D [ (r + γ Q_θ'(s', a') − Q_θ(s, a))² ]

a' is the action the data took next, so no maximum over unseen actions enters the target. The
policy improves once, at deployment: π(s) = argmax_a Q_θ(s, a).
"""

from __future__ import annotations

from typing import NamedTuple

from rbve import ops
from rbve.algorithms import NoOptions
from rbve.types import Array, Batch, Views

HEAD = "q"
BOOTSTRAP = "pair"


class Config(NamedTuple):
    pass


def loss(
    views: Views, batch: Batch, config: Config, options: NoOptions, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    q = ops.select(views.now.q, batch.action)
    next_q = ops.select(views.target.q, batch.next_action)
    td_loss = td(q, batch.reward, batch.discount, next_q)
    return td_loss, {"td_loss": td_loss, "q": q}
