"""A policy inside JAX: a pure function of what it sees now, and of its memory where it has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from rbve.types import Array, Tree

# (params, config, obs, legal, key) -> scores, whose argmax acts, and Q, both (B, A)
Act = Callable[[Tree, Tree, Array, Array | None, Array], tuple[Array, Array]]


class ActorInput(NamedTuple):
    """What an actor sees of one step."""

    obs: Array  # (B, ...)
    last_action: Array  # (B,) int32; −1 before the first
    last_reward: Array  # (B,)

    @staticmethod
    def first(obs: Array) -> ActorInput:
        """At the beginning of episodes."""
        count = obs.shape[0]
        return ActorInput(obs, jnp.full(count, -1, jnp.int32), jnp.zeros(count))


class Actor(NamedTuple):
    """The functions that play a policy."""

    start: Callable[[Tree, int], Tree]  # params, episodes -> their empty memories
    # (params, config, input, memory, legal, key) -> scores, Q, memory
    act: Callable[[Tree, Tree, ActorInput, Tree, Array | None, Array], tuple[Array, Array, Tree]]


def without_memory(act: Act) -> Actor:
    """An actor that decides by its observation alone."""
    return Actor(
        lambda params, episodes: (),
        lambda params, config, seen, memory, legal, key: (
            *act(params, config, seen.obs, legal, key),
            memory,
        ),
    )
