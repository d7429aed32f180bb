"""Who acts inside JAX: a function of what is seen now, and of a memory where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from rbve.types import Array, Tree

# (params, config, obs, legal, key) -> scores, whose argmax acts, and Q, both (B, A)
Act = Callable[[Tree, Tree, Array, Array | None, Array], tuple[Array, Array]]


class Look(NamedTuple):
    """What an agent sees of one step."""

    obs: Array  # (B, ...)
    last_action: Array  # (B,) int32; −1 before the first
    last_reward: Array  # (B,)

    @staticmethod
    def first(obs: Array) -> Look:
        """At the beginning of episodes."""
        count = obs.shape[0]
        return Look(obs, jnp.full(count, -1, jnp.int32), jnp.zeros(count))


class Actor(NamedTuple):
    start: Callable[[Tree, int], Tree]  # params, episodes -> their empty memories
    # (params, config, look, memory, legal, key) -> scores, Q, memory
    act: Callable[[Tree, Tree, Look, Tree, Array | None, Array], tuple[Array, Array, Tree]]


def forgetful(act: Act) -> Actor:
    """An actor without memory."""

    def glance(
        params: Tree, config: Tree, look: Look, memory: Tree, legal: Array | None, key: Array
    ) -> Any:
        return (*act(params, config, look.obs, legal, key), memory)

    return Actor(lambda params, episodes: (), glance)


def as_actor(act: Act | Actor) -> Actor:
    return act if isinstance(act, Actor) else forgetful(act)
