"""Many episodes at once inside JAX, with the paper's value diagnostics.

    over-estimation error   mean of max(Q(s, a) − G(s), 0)²
    at the start            the same, of the first state alone
    value error             mean of Q(s, a) − G(s)
    action gap              mean of best minus second best Q

over all visited states of an episode; a is the action taken and G the discounted return that
followed. Episodes cut by a limit lack the tail of G and give no value figures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rbve import ops
from rbve.envs.base import Env
from rbve.evaluation.actor import Act, Actor, Look, as_actor
from rbve.types import Array, Tree


class Evaluation(NamedTuple):
    """One entry per episode."""

    returns: Array  # undiscounted
    lengths: Array
    terminated: Array  # bool; False = cut by a limit
    overestimation: Array
    start_overestimation: Array
    value_error: Array
    action_gap: Array
    clipped_returns: Array | None = None  # of rewards in [−1, 1], where training clips them

    def summary(self, values: bool = True) -> dict[str, tuple[float, int]]:
        """Means with the number of episodes behind each."""
        host = {
            name: np.asarray(value, np.float64)
            for name, value in self._asdict().items()
            if value is not None
        }
        ended = host["terminated"] > 0
        result = {
            "return": (float(host["returns"].mean()), len(ended)),
            "episode_length": (float(host["lengths"].mean()), len(ended)),
        }
        if "clipped_returns" in host:
            result["clipped_return"] = (float(host["clipped_returns"].mean()), len(ended))
        if not values:
            return result
        for name in ("overestimation", "start_overestimation", "value_error"):
            column = host[name][ended]
            result[name] = (float(column.mean()) if ended.any() else float("nan"), int(ended.sum()))
        result["action_gap"] = (float(host["action_gap"].mean()), len(ended))
        return result


def make_rollout(
    env: Env,
    act: Act | Actor,
    episodes: int,
    epsilon: float,
    gamma: float,
    clip_rewards: bool = False,
) -> Callable[[Tree, Tree, Array], Evaluation]:
    """A pure function (params, config, key) -> Evaluation."""
    actions = len(env.actions)
    actor = as_actor(act)

    def rollout(params: Tree, config: Tree, key: Array) -> Evaluation:
        key_reset, key_explore, key_net, key_env = jax.random.split(key, 4)
        state, obs = jax.vmap(env.reset)(jax.random.split(key_reset, episodes))
        strike, which = jax.random.uniform(key_explore, (2, env.max_steps, episodes))
        explore = strike < epsilon
        record = {
            name: jnp.zeros((env.max_steps, episodes)) for name in ("reward", "q", "gap", "alive")
        }

        def running(carry: tuple[Any, ...]) -> Array:
            t, *_, alive, _, _ = carry
            return (t < env.max_steps) & jnp.any(alive)

        def step(carry: tuple[Any, ...]) -> tuple[Any, ...]:
            t, state, look, memory, alive, terminated, record = carry
            legal = None if env.legal is None else jax.vmap(env.legal)(state)
            key = jax.random.fold_in(key_net, t)
            scores, q, memory = actor.act(params, config, look, memory, legal, key)
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
            record = {name: record[name].at[t].set(now[name]) for name in record}
            terminated = terminated | (alive & outcome.terminated)
            alive = alive & ~(outcome.terminated | outcome.truncated)
            look = Look(outcome.obs, action, outcome.reward)
            return t + 1, state, look, memory, alive, terminated, record

        alive = jnp.ones(episodes, bool)
        memory = actor.start(params, episodes)
        start = (jnp.zeros((), jnp.int32), state, Look.first(obs), memory, alive, ~alive, record)
        *_, terminated, record = jax.lax.while_loop(running, step, start)
        return measure(record, terminated, gamma, clip_rewards)

    return rollout


def measure(
    record: dict[str, Array], terminated: Array, gamma: float, clip_rewards: bool
) -> Evaluation:
    """Figures per episode from (T, E) records of reward, q, gap and alive."""
    reward = jnp.clip(record["reward"], -1, 1) if clip_rewards else record["reward"]

    def back(g: Array, reward: Array) -> tuple[Array, Array]:
        g = reward + gamma * g
        return g, g

    g = jax.lax.scan(back, jnp.zeros(reward.shape[1]), reward, reverse=True)[1]
    alive = record["alive"]
    lengths = jnp.sum(alive, axis=0)
    error = record["q"] - g

    def per_episode(values: Array) -> Array:
        return jnp.sum(jnp.where(alive > 0, values, 0.0), axis=0) / lengths

    excess = ops.square(jnp.maximum(error, 0.0))
    return Evaluation(
        returns=jnp.sum(record["reward"], axis=0),
        lengths=lengths,
        terminated=terminated,
        overestimation=per_episode(excess),
        start_overestimation=excess[0],
        value_error=per_episode(error),
        action_gap=per_episode(record["gap"]),
        clipped_returns=jnp.sum(reward, axis=0) if clip_rewards else None,
    )


def random_return(env: Env, episodes: int = 1000, seed: int = 0) -> float:
    """Mean return of the uniform policy."""
    return float(np.mean(random_returns(env, episodes, seed), dtype=np.float64))


def random_returns(env: Env, episodes: int, seed: int) -> np.ndarray:
    """Returns of the uniform policy."""

    def act(params: Tree, config: Tree, obs: Array, legal: Any, key: Array) -> Any:
        nothing = jnp.zeros((obs.shape[0], len(env.actions)))  # epsilon 1 decides
        return nothing, nothing

    rollout = jax.jit(make_rollout(env, act, episodes, epsilon=1.0, gamma=1.0))
    return np.asarray(rollout((), (), jax.random.key(seed)).returns)
