"""Losses of hand-made numbers: heads, batches, and the value of every item."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve import algorithms, ops
from rbve.types import Batch, Head, Views

KEY = jax.random.key(0)


def head(q: Any, **parts: Any) -> Head:
    array = jnp.array(q, jnp.float32)
    return Head(q=array, ranked=array, **{k: jnp.array(v, jnp.float32) for k, v in parts.items()})


def batch(action: list[int], **columns: Any) -> Batch:
    """A batch whose unnamed columns hold values no loss may use unasked."""
    count = len(action)
    filled = {
        "reward": [0.5] * count,
        "discount": [0.5] * count,
        "next_action": [0] * count,
        "g": [100.0] * count,
        **columns,
    }
    has_next_action = [float(d) > 0 for d in filled["discount"]]
    return Batch(
        action=jnp.array(action),
        reward=jnp.array(filled["reward"], jnp.float32),
        discount=jnp.array(filled["discount"], jnp.float32),
        next_action=jnp.array(filled["next_action"]),
        has_next_action=jnp.array(has_next_action),
        g=jnp.array(filled["g"], jnp.float32),
        g_scale=jnp.array(filled.get("g_scale", 1.0), jnp.float32),
        weight=jnp.ones(count),
        legal=None if "legal" not in filled else jnp.array(filled["legal"], bool),
        next_legal=None if "next_legal" not in filled else jnp.array(filled["next_legal"], bool),
    )


def values(
    name: str, views: Views, batch: Batch, td: ops.TD | None = None, **settings: Any
) -> np.ndarray:
    """The loss of every item, under the algorithm's Config and Options with `settings`."""
    algorithm = algorithms.load(name)
    config = {k: v for k, v in settings.items() if k in algorithm.config._fields}
    options = {k: v for k, v in settings.items() if k not in config}

    @jax.jit
    def loss(views: Views, batch: Batch, config: Any) -> jax.Array:
        chosen = algorithm.options(**options)
        return algorithm.loss(views, batch, config, chosen, td or ops.TD(), KEY)[0]

    return np.asarray(loss(views, batch, algorithm.config(**config)))
