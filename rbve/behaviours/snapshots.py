"""Snapshots of the online agent, judged without noise: the best is the reference score's policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from rbve import algorithms
from rbve.envs.base import Env
from rbve.evaluation.rollout import EvaluationPlan, make_rollout
from rbve.policy import Policy, act_function
from rbve.training.update import recorder_key

SNAPSHOTS = 20  # looks at the agent over a recording
EPISODES_PER_LOOK = 100
EPISODES_FOR_VERDICT = 1000


def mean_return(found: Any) -> float:
    return float(np.asarray(found["return"], np.float64).mean())


class SnapshotJudge:
    """Evaluates snapshots without noise; the best one is the reference and the expert."""

    def __init__(
        self, env: Env, unravel: Callable[[Any], Any], gamma: float, seed: int, **form: Any
    ) -> None:
        """`form` says of a policy what its weights do not: hidden, memory, rescaled."""
        self.env, self.unravel, self.gamma, self.form = env, unravel, gamma, form
        algorithm = algorithms.load("dqn")
        rescaled = bool(form.get("rescaled"))
        self.act = act_function(algorithm, algorithm.options(), unravel, rescaled=rescaled)
        self.rollout = jax.jit(self._rollout(EPISODES_PER_LOOK))
        self.key = jax.random.fold_in(recorder_key(seed), 1)
        self.looks: list[tuple[float, np.ndarray]] = []

    def _rollout(self, episodes: int) -> Any:
        return make_rollout(self.env, self.act, EvaluationPlan(episodes, 0.0, self.gamma))

    def next_look(self, total: int) -> int:
        """When to look again, of so many episodes or steps."""
        return -(-total * (len(self.looks) + 1) // SNAPSHOTS)

    def look(self, params: Any) -> None:
        found = self.rollout(params, (), jax.random.fold_in(self.key, len(self.looks)))
        self.looks.append((mean_return(found), np.array(params)))

    def verdict(self) -> tuple[float, np.ndarray]:
        """Value of the best snapshot, from fresh episodes: the best of many looks is biased."""
        _, params = max(self.looks, key=lambda look: look[0])
        found = jax.jit(self._rollout(EPISODES_FOR_VERDICT))(
            params, (), jax.random.fold_in(self.key, SNAPSHOTS + 1)
        )
        return mean_return(found), params

    def policy(self, params: np.ndarray, value: float) -> Policy:
        algorithm = algorithms.load("dqn")
        return Policy(
            algorithm=algorithm,
            options=algorithm.options(),
            config=algorithm.config(),
            network=self.unravel(jax.numpy.asarray(params)),
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
