"""A policy with its fallback inside JAX, where episodes are played: what `Decider` does."""

from typing import Any

import jax
import jax.numpy as jnp

from rbve import ops
from rbve.data.features import Features
from rbve.policy.network import Actor, ActorInput
from rbve.policy.support import Support
from rbve.runtime.outcome import Rules, choose
from rbve.types import Array, Tree


def with_fallback(own: Actor, model: Actor, support: Support, features: Features | None) -> Actor:
    """`own`, which prefers the fallback where the data does not support its best action; `model`
    is the actor of the behaviour."""

    def start(params: Tree, episodes: int) -> Tree:
        return own.start(params, episodes), model.start(support.behaviour.network, episodes)

    def act(
        params: Tree, config: Tree, seen: ActorInput, memory: Tree, legal: Array | None, key: Array
    ) -> Any:
        scores, q, mine = own.act(params, config, seen, memory[0], legal, key)
        behaviour = support.behaviour
        _, logits, other = model.act(
            behaviour.network, behaviour.config, seen, memory[1], legal, key
        )
        action = decided(scores, logits, legal, seen.obs, support, features)
        return preferred(scores, action), q, (mine, other)

    return Actor(start, act)


def decided(
    scores: Any, logits: Any, legal: Any, obs: Any, support: Support, features: Features | None
) -> Array:
    """The action (B,), of scores and of the logits of the behaviour's model, both (B, A)."""
    legal = jnp.ones(scores.shape, bool) if legal is None else jnp.asarray(legal)
    behaviour = jax.nn.softmax(ops.mask(logits, legal) / support.temperature, axis=-1)
    inside = jnp.ones(len(obs), bool)
    for index, column in enumerate(features.columns if features else ()):
        inside &= ~column.far(obs[:, index], jnp)
    outputs = {"scores": jnp.asarray(scores), "behaviour": behaviour}
    rules = Rules(threshold=support.threshold, fallback=support.fallback)
    return choose(jnp, outputs, legal, inside, rules)["action"]


def preferred(scores: Array, action: Array) -> Array:
    """The scores with that of the action above all others."""
    best = jnp.max(scores, axis=1, keepdims=True)
    chosen = action[:, None] == jnp.arange(scores.shape[1])
    return jnp.where(chosen & (scores < best), best + 1 + jnp.abs(best), scores)
