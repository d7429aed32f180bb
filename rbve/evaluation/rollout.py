"""Many episodes at once inside JAX, and the metrics of episodes played here or elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve import ops
from rbve.envs.base import Env
from rbve.evaluation.metric import METRICS, Record, modules
from rbve.policy.network import Act, Actor, ActorInput, without_memory
from rbve.rows import Row
from rbve.schema import INT32
from rbve.types import Array, Tree

STEP_COLUMNS = ("reward", "q", "gap", "alive")
Figures = dict[str, tuple[float, int]]  # metric -> mean, episodes behind it


@dataclass(frozen=True)
class EvaluationPlan:
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
            return (carry[0] < env.max_steps) & jnp.any(carry[-3])  # t, alive

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

        first, memory = ActorInput.first(obs), actor.start(params, episodes)
        alive = jnp.ones(episodes, bool)
        start = (jnp.zeros((), jnp.int32), state, first, memory, alive, ~alive, columns)
        *_, terminated, columns = jax.lax.while_loop(running, step, start)
        return measure(columns, terminated, gamma, bool(plan.clip_rewards))

    return rollout


def undecided(actions: int) -> Actor:
    """Prefers no action: play it with epsilon 1."""

    def act(params: Tree, config: Tree, obs: Array, legal: Any, key: Array) -> Any:
        return (jnp.zeros((obs.shape[0], actions)),) * 2

    return without_memory(act)


def random_returns(env: Env, episodes: int, seed: int) -> np.ndarray:
    actor, plan = undecided(len(env.actions)), EvaluationPlan(episodes, epsilon=1.0)
    rollout = jax.jit(make_rollout(env, actor, plan))
    return np.asarray(rollout((), (), jax.random.key(seed))["return"])


def random_return(env: Env, episodes: int = 1000, seed: int = 0) -> float:
    return float(np.mean(random_returns(env, episodes, seed), dtype=np.float64))


def measure(
    columns: Mapping[str, Array], terminated: Array, gamma: Any, clip_rewards: bool
) -> dict[str, Array]:
    """Every metric's values (E,) from STEP_COLUMNS (T, E), and whether episodes terminated."""
    reward = jnp.clip(columns["reward"], -1, 1) if clip_rewards else columns["reward"]

    def back(g: Array, reward: Array) -> tuple[Array, Array]:
        g = reward + gamma * g
        return g, g

    g = jax.lax.scan(back, jnp.zeros(reward.shape[1]), reward, reverse=True)[1]
    record = Record(
        **columns, terminated=terminated, trained_reward=reward, clipped=clip_rewards, g=g
    )
    known = [module for module in modules(METRICS) if hasattr(module, "per_episode")]
    measured = {module.METRIC.name: module.per_episode(record) for module in known}
    measured = {name: values for name, values in measured.items() if values is not None}
    return {**measured, "terminated": terminated}


@dataclass(frozen=True)
class Evaluation:
    per_episode: Mapping[str, Any]  # metric -> (E,), and "terminated"
    values: bool = True  # whether the policy has values
    legal_actions: str | None = None  # who said which are legal; None = there were no masks

    def figures(self, facts: Mapping[str, Any] | None = None) -> Figures:
        """Means over episodes; `facts` of the data let returns be normalised."""
        host = {name: np.asarray(each, np.float64) for name, each in self.per_episode.items()}
        ended = host["terminated"] > 0
        figures: Figures = {}
        known = [module for module in modules(METRICS) if self.values or not module.METRIC.values]
        for metric in (module.METRIC for module in known if module.METRIC.name in host):
            values = host[metric.name][ended if metric.episodes == "terminated" else slice(None)]
            figures[metric.name] = (float(values.mean()) if len(values) else np.nan, len(values))
        for module in known:
            if hasattr(module, "derived") and facts is not None:
                figure = module.derived(figures, facts)
                figures |= {} if figure is None else {module.METRIC.name: figure}
        return figures


def final_rows(step: int, evaluations: Sequence[Figures]) -> list[Row]:
    """The final figures: means of the last evaluations that measured anything."""
    rows = []
    for name in evaluations[-1] if evaluations else ():
        values = [each[name] for each in evaluations if name in each and each[name][1] > 0]
        mean = float(np.mean([value for value, _ in values])) if values else np.nan
        rows.append(Row(step, f"final/{name}", mean, sum(n for _, n in values)))
    return rows
