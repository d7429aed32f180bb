"""Evaluation in environments outside JAX, one episode after another."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from rbve.envs.base import HostEnv, random_action
from rbve.evaluation.rollout import Evaluation, measure
from rbve.policy import Policy


def evaluate_on_host(
    env: HostEnv,
    policy: Policy,
    episodes: int,
    epsilon: float,
    gamma: float,
    clip_rewards: bool = False,
    seed: int = 0,
) -> Evaluation:
    rng = np.random.default_rng(seed)
    found = []
    for index in range(episodes):
        record, terminated = host_record(env, policy, epsilon, rng, seed if index == 0 else None)
        columns = {name: jnp.asarray(values)[:, None] for name, values in record.items()}
        found.append(measure(columns, jnp.asarray([terminated]), gamma, clip_rewards))
    return Evaluation(*(jnp.concatenate(field) for field in zip(*found, strict=True)))


def host_record(
    env: HostEnv, policy: Policy, epsilon: float, rng: np.random.Generator, seed: int | None
) -> tuple[dict[str, Any], bool]:
    """Reward, Q of the action taken and action gap of every step of one episode."""
    obs = env.reset(seed)
    rewards, values, gaps = [], [], []
    terminated = truncated = False
    while not (terminated or truncated):
        legal = env.legal
        action = int(policy.act(obs, legal=legal))
        if rng.random() < epsilon:
            action = random_action(rng, len(env.actions), legal)
        if policy.algorithm.values:
            q = policy.q_values(obs)
            best = np.sort(q if legal is None else q[legal])
            values.append(q[action])
            gaps.append(best[-1] - best[-2] if len(best) > 1 else 0.0)
        obs, reward, terminated, truncated = env.step(action)
        rewards.append(reward)
    blank = np.zeros(len(rewards))
    return {
        "reward": np.asarray(rewards, np.float32),
        "q": np.asarray(values, np.float32) if values else blank,
        "gap": np.asarray(gaps, np.float32) if gaps else blank,
        "alive": np.ones(len(rewards)),
    }, terminated
