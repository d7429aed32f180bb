"""A policy inside JAX: pure functions of its parameters, what it sees now and its memory."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp

from rbve import ops
from rbve.algorithms import Acting
from rbve.data.features import Features
from rbve.networks import Network, Recurrent
from rbve.networks.recurrent import Memory, Seen
from rbve.types import Array, Head, Tree

# (params, config, obs, legal, key) -> scores, whose argmax acts, and Q, both (B, A)
Act = Callable[[Tree, Tree, Array, Array | None, Array], tuple[Array, Array]]


class ActorInput(NamedTuple):
    obs: Array  # (B, ...)
    last_action: Array  # (B,) int32; −1 before the first
    last_reward: Array  # (B,)

    @staticmethod
    def first(obs: Array) -> "ActorInput":
        count = obs.shape[0]
        return ActorInput(obs, jnp.full(count, -1, jnp.int32), jnp.zeros(count))


class Actor(NamedTuple):
    start: Callable[[Tree, int], Tree]  # params, episodes -> their empty memories
    # (params, config, input, memory, legal, key) -> scores, Q, memory
    act: Callable[[Tree, Tree, ActorInput, Tree, Array | None, Array], tuple[Array, Array, Tree]]


def without_memory(act: Act) -> Actor:
    """An actor that decides by its observation alone."""

    def remembering(params: Any, config: Any, seen: Any, memory: Any, legal: Any, key: Any) -> Any:
        return *act(params, config, seen.obs, legal, key), memory

    return Actor(lambda params, episodes: (), remembering)


def shown(head: Head, rescaled: bool) -> Head:
    return head._replace(q=ops.unscale(head.q)) if rescaled else head


@eqx.filter_jit
def forward(network: Network, obs: Array) -> Head:
    return network(obs, None)


@eqx.filter_jit
def recall(network: Recurrent, seen: Seen, memory: Memory) -> tuple[Head, Memory]:
    """The same for steps (1, B) of networks with memory."""
    return network(seen, memory, None)


def act_function(
    algorithm: Acting,
    options: Any,
    unravel: Any,
    features: Features | None = None,
    rescaled: bool = False,
) -> Actor:
    rescaled = rescaled and algorithm.values

    def start(params: Tree, episodes: int) -> Tree:
        network = unravel(params)
        return network.start(episodes) if isinstance(network, Recurrent) else ()

    def act(
        params: Tree, config: Tree, seen: ActorInput, memory: Tree, legal: Array | None, key: Array
    ) -> Any:
        obs = seen.obs if features is None else features.encode(seen.obs, jnp)
        network = unravel(params)
        if isinstance(network, Recurrent):
            # Memories are empty at an episode's start, so none has to be emptied here.
            first = jnp.zeros((1, obs.shape[0]), bool)
            steps = Seen(obs[None], seen.last_action[None], seen.last_reward[None], first)
            head, memory = network(steps, memory, key)
        else:
            head = network(obs, key)
        scores = algorithm.scores(head, legal, config, options)
        return scores, shown(head, rescaled).q, memory

    return Actor(start, act)
