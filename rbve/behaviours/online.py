"""What online agents inside JAX share: environments, an update, the loop, what lies beside data.

Snapshots of the agent are evaluated without noise: the best is the reference score's policy.
"""

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rbve import algorithms, envs, ops, stopping
from rbve.behaviours.record import EXPERT, SECONDS_PER_FLUSH
from rbve.data.dataset import Episode
from rbve.data.formats.native import StoreWriter
from rbve.envs.base import Env
from rbve.evaluation.rollout import EvaluationPlan, make_rollout, random_return
from rbve.policy import Policy, act_function
from rbve.training.update import recorder_key
from rbve.types import Array

_SNAPSHOTS = 20  # looks at the agent over a recording
_EPISODES_PER_LOOK = 100
_EPISODES_FOR_VERDICT = 1000
_LATE = 10  # one part in so many of the episodes, the last


class SnapshotJudge:
    """Evaluates snapshots without noise; the best one is the reference and the expert."""

    def __init__(
        self, env: Env, unravel: Callable[[Any], Any], gamma: float, seed: int, **form: Any
    ) -> None:
        """`form` says of a policy what its weights do not: hidden, memory, rescaled."""
        self.env, self.unravel, self.gamma, self.form = env, unravel, gamma, form
        self.algorithm = algorithms.load("dqn")
        rescaled = bool(form.get("rescaled"))
        self.act = act_function(self.algorithm, self.algorithm.options(), unravel, None, rescaled)
        self.rollout = functools.cache(self._compile_rollout)
        self.key = jax.random.fold_in(recorder_key(seed), 1)
        self.looks: list[tuple[float, np.ndarray]] = []

    def _compile_rollout(self, episodes: int) -> Any:
        plan = EvaluationPlan(episodes, 0.0, self.gamma)
        return jax.jit(make_rollout(self.env, self.act, plan))

    def value(self, params: Any, episodes: int, number: int) -> float:
        """Mean return of episodes that the number tells from others."""
        columns = self.rollout(episodes)(params, (), jax.random.fold_in(self.key, number))
        return float(np.asarray(columns["return"], np.float64).mean())

    def next_look(self, total: int) -> int:
        """When to look again, of so many episodes or steps."""
        return -(-total * (len(self.looks) + 1) // _SNAPSHOTS)

    def look(self, params: Any) -> None:
        value = self.value(params, _EPISODES_PER_LOOK, len(self.looks))
        self.looks.append((value, np.array(params)))

    def verdict(self) -> tuple[float, np.ndarray]:
        """Value of the best snapshot, from fresh episodes: the best of many looks is biased."""
        _, params = max(self.looks, key=lambda look: look[0])
        return self.value(params, _EPISODES_FOR_VERDICT, _SNAPSHOTS + 1), params

    def policy(self, params: np.ndarray, value: float) -> Policy:
        return Policy(
            algorithm=self.algorithm,
            options=self.algorithm.options(),
            config=self.algorithm.config(),
            network=self.unravel(jnp.asarray(params)),
            obs_shape=self.env.obs_shape,
            actions=self.env.actions,
            masked=self.env.legal is not None,
            **self.form,
            info={
                "from": "best snapshot of the online agent",
                "return": value,
                "job": {"view": {"gamma": self.gamma}},
            },
        )


def explore(scores: Array, legal: Array | None, epsilon: Any, key: Array) -> tuple[Array, Array]:
    """(action, best action) of scores (..., A) under ε-greedy exploration."""
    best = jnp.argmax(scores, axis=-1).astype(jnp.int32)
    strike, which = jax.random.uniform(key, (2, *best.shape))
    random = ops.uniform_action(which, scores.shape[-1], legal)
    return jnp.where(strike < epsilon, random, best), best


def descend(state: Any, grad: Array, optimiser: Any, target_period: int) -> Any:
    """An agent's state after one update of its weights; the target follows once a period."""
    direction, opt = optimiser.update(grad, state.opt)
    params = optax.apply_updates(state.params, direction)
    updates = state.updates + 1
    due = updates % target_period == 0
    target = jax.lax.cond(due, lambda: params, lambda: state.target)
    return state._replace(params=params, target=target, opt=opt, updates=updates)


def jax_environments(name: str, noise: float) -> tuple[Env, Env]:
    """The environment with its noise, and without; ValueError where it is not inside JAX."""
    env, quiet = envs.load(name, noise), envs.load(name)
    if not isinstance(env, Env) or not isinstance(quiet, Env):
        raise ValueError(
            f"this online agent runs inside JAX and {name} does not; record it with "
            "--preset rlu-atari (an online DQN without memory), --policy uniform, --policy FILE "
            "or, where one plays it, --policy script"
        )
    return env, quiet


def run_agent(
    advance: Callable[[int, int], tuple[Sequence[Episode], int]],
    params: Callable[[], Any],
    judge: SnapshotJudge,
    total: int,
    blocks: int,
) -> Iterator[tuple[Sequence[Episode], float]]:
    """Episodes of a learning agent, in calls of a few seconds, with snapshots evaluated between.

    `advance` takes a goal and how many blocks of work to do, and gives fresh episodes and how far
    the agent is now, of `total` episodes, steps or chunks; `params` gives its weights.
    """
    reached = 0
    while reached < total:
        stopping.check()
        goal = min(total, judge.next_look(total))
        started = time.monotonic()
        fresh, reached = advance(goal, blocks)
        blocks = paced(blocks, time.monotonic() - started)
        yield fresh, min(reached / total, 1.0)
        if reached >= goal:
            judge.look(params())


def paced(blocks: int, seconds: float) -> int:
    """Work of the next call; how it is cut never changes what is recorded."""
    return int(np.clip(blocks * SECONDS_PER_FLUSH / max(seconds, 1e-3), blocks / 2, blocks * 2)) + 1


def finish(judge: SnapshotJudge, writer: StoreWriter, returns: Sequence[float]) -> None:
    """The best snapshot beside the data, and the returns that scores are normalised by."""
    online, params = judge.verdict()
    judge.policy(params, online).save(writer.path / EXPERT)
    writer.manifest["provenance"] |= {
        "reference": {"online": online, "random": random_return(judge.env)},
        "late_return": late_return(returns),
    }


def late_return(returns: Sequence[float]) -> float:
    """Mean return of the last tenth of the episodes."""
    return float(np.mean(returns[-max(1, len(returns) // _LATE) :]))


def has_learned(provenance: dict[str, Any], times: float) -> bool:
    """Whether a recording's late returns are at least so many times the uniform policy's.

    Means something where returns are not negative, as in MinAtar.
    """
    return bool(provenance["late_return"] >= times * provenance["reference"]["random"])


def came_half_way(provenance: dict[str, Any], best: float) -> bool:
    """Whether the best snapshot closes half of the distance from the uniform policy to `best`."""
    reference = provenance["reference"]
    return bool(2 * reference["online"] >= reference["random"] + best)
