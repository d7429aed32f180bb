"""Many episodes at once inside JAX."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve import ops
from rbve.envs.base import Env
from rbve.evaluation.record import STEP_COLUMNS, measure
from rbve.policy.network import Act, Actor, ActorInput, without_memory
from rbve.schema import INT32
from rbve.types import Array, Tree


@dataclass(frozen=True)
class EvaluationPlan:
    """How policies are evaluated."""

    episodes: int = 100
    epsilon: float = 0.4**8  # share of random actions (the paper's)
    gamma: float | None = None  # discount of the value metrics; None = that of the training
    clip_rewards: bool | None = None  # in the value metrics; None = as in training
    noise: float = 0.0  # probability that the environment executes a random action
    legal: str | None = None  # "all", if the policy's data had masks and the environment has none

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ValueError(f"episodes must be at least 1; got {self.episodes}")
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon must lie in [0, 1]; got {self.epsilon}")
        if self.gamma is not None and not 0 <= self.gamma <= 1:
            raise ValueError(f"gamma must lie in [0, 1]; got {self.gamma}")


def check_seed(seed: int) -> None:
    """ValueError where JAX cannot count so far."""
    if not 0 <= seed <= INT32:
        raise ValueError(f"seed must lie in [0, {INT32}]; got {seed}")


def make_rollout(
    env: Env, act: Act | Actor, plan: EvaluationPlan
) -> Callable[[Tree, Tree, Array], dict[str, Array]]:
    """A pure function (params, config, key) -> every metric's values per episode."""
    actions, episodes = len(env.actions), plan.episodes
    gamma = 1.0 if plan.gamma is None else plan.gamma
    actor = act if isinstance(act, Actor) else without_memory(act)

    def rollout(params: Tree, config: Tree, key: Array) -> dict[str, Array]:
        key_reset, key_explore, key_net, key_env = jax.random.split(key, 4)
        state, obs = jax.vmap(env.reset)(jax.random.split(key_reset, episodes))
        strike, which = jax.random.uniform(key_explore, (2, env.max_steps, episodes))
        explore = strike < plan.epsilon
        columns = {name: jnp.zeros((env.max_steps, episodes)) for name in STEP_COLUMNS}

        def running(carry: tuple[Any, ...]) -> Array:
            t, *_, alive, _, _ = carry
            return (t < env.max_steps) & jnp.any(alive)

        def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            t, state, seen, memory, alive, terminated, columns = carry
            legal = None if env.legal is None else jax.vmap(env.legal)(state)
            key = jax.random.fold_in(key_net, t)
            scores, q, memory = actor.act(params, config, seen, memory, legal, key)
            action = jnp.argmax(scores, axis=-1).astype(jnp.int32)
            random_action = ops.uniform_action(which[t], actions, legal)
            action = jnp.where(explore[t], random_action, action)
            keys = jax.random.split(jax.random.fold_in(key_env, t), episodes)
            state, outcome = jax.vmap(env.step)(state, action, keys)
            now = {
                "reward": jnp.where(alive, outcome.reward, 0.0),
                "q": ops.select(q, action),
                "gap": ops.action_gap(q, legal),
                "alive": alive,
            }
            columns = {name: columns[name].at[t].set(now[name]) for name in columns}
            terminated = terminated | (alive & outcome.terminated)
            alive = alive & ~(outcome.terminated | outcome.truncated)
            seen = ActorInput(outcome.obs, action, outcome.reward)
            return t + 1, state, seen, memory, alive, terminated, columns

        alive = jnp.ones(episodes, bool)
        memory = actor.start(params, episodes)
        first = ActorInput.first(obs)
        start = (jnp.zeros((), jnp.int32), state, first, memory, alive, ~alive, columns)
        *_, terminated, columns = jax.lax.while_loop(running, step, start)
        return measure(columns, terminated, gamma, bool(plan.clip_rewards))

    return rollout


def undecided(actions: int) -> Actor:
    """Prefers no action: play it with epsilon 1."""

    def act(params: Tree, config: Tree, obs: Array, legal: Any, key: Array) -> Any:
        nothing = jnp.zeros((obs.shape[0], actions))
        return nothing, nothing

    return without_memory(act)


def random_returns(env: Env, episodes: int, seed: int) -> np.ndarray:
    """Returns of the uniform policy."""
    actor, plan = undecided(len(env.actions)), EvaluationPlan(episodes, epsilon=1.0)
    rollout = jax.jit(make_rollout(env, actor, plan))
    return np.asarray(rollout((), (), jax.random.key(seed))["return"])


def random_return(env: Env, episodes: int = 1000, seed: int = 0) -> float:
    """Mean return of the uniform policy."""
    return float(np.mean(random_returns(env, episodes, seed), dtype=np.float64))
