"""Random ensemble mixture, REM (Agarwal et al., 2020).

    L(θ) = E_D [ (r + γ max_a' Σ_k α_k Q_θ'^k(s', a') − Σ_k α_k Q_θ^k(s, a))² ]
    α ~ U(0, 1)^K, normalised to sum 1; one draw per update, shared by both networks

Acts on the mean over heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from rbve import ops
from rbve.types import Array, Batch, Head, Views

HEAD = "ensemble"
BOOTSTRAP = "state"


class Config(NamedTuple):
    pass


@dataclass(frozen=True)
class Options:
    heads: int = 200  # K (Agarwal et al.)


def loss(
    views: Views, batch: Batch, config: Config, options: Options, td: ops.TD, key: Array
) -> tuple[Array, dict[str, Array]]:
    alpha = jax.random.uniform(key, (options.heads,))
    alpha = alpha / jnp.sum(alpha)
    mixed_now, mixed_target = mixture(views.now, alpha), mixture(views.target, alpha)
    q = ops.select(mixed_now, batch.action)
    next_q = jnp.max(ops.mask(mixed_target, batch.next_legal), axis=-1)
    td_loss = td(q, batch.reward, batch.discount, next_q)
    return td_loss, {"td_loss": td_loss, "q": q}


def mixture(head: Head, alpha: Array) -> Array:
    """Σ_k α_k Q_k, by the network itself where it can."""
    if head.mix is not None:
        return head.mix(alpha)
    assert head.parts is not None
    return jnp.einsum("k,...ka->...a", alpha, head.parts)
