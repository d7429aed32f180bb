"""Behaviour cloning (Pomerleau, 1989).

L(θ) = −E_D [ log π_θ(a | s) ]
"""

from __future__ import annotations

from typing import NamedTuple

import jax

from rbve import ops
from rbve.algorithms import NoOptions
from rbve.types import Array, Batch, Views

HEAD = "policy"
BOOTSTRAP = "none"
VALUES = False


class Config(NamedTuple):
    pass


def loss(
    views: Views, batch: Batch, config: Config, options: NoOptions, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    log_policy = jax.nn.log_softmax(ops.mask(views.now.q, batch.legal), axis=-1)
    imitation = -ops.select(log_policy, batch.action)
    return imitation, {"imitation_loss": imitation}
