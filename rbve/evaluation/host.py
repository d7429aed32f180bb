"""Evaluation in environments outside JAX."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from rbve.envs.base import HostEnv
from rbve.evaluation.lanes import Lanes, Player, Trace, play
from rbve.evaluation.players import PolicyPlayer
from rbve.evaluation.rollout import Evaluation, measure
from rbve.policy import Policy

# Salt that sets policies' trials apart from a recording with the same seed.
TRIAL = 1 << 31


def evaluate_on_host(
    env: HostEnv | Lanes,
    policy: Policy | Player,
    episodes: int,
    epsilon: float,
    gamma: float,
    clip_rewards: bool = False,
    seed: int = 0,
    salt: int = 0,
) -> Evaluation:
    """Episode k of a seed is the same however many are asked for; lanes play side by side."""
    lanes = env if isinstance(env, Lanes) else Lanes([env])
    player = PolicyPlayer.for_lanes(policy, lanes) if isinstance(policy, Policy) else policy
    traces = list(play(lanes, player, episodes, epsilon, seed, salt=salt))
    return measure_traces(traces, gamma, clip_rewards)


def measure_traces(traces: Sequence[Trace], gamma: float, clip_rewards: bool) -> Evaluation:
    # Lengths are rounded up to powers of two, so that few programs are compiled.
    steps = 1 << (max(len(trace.reward) for trace in traces) - 1).bit_length()
    record = {
        name: np.zeros((steps, len(traces)), np.float32) for name in ("reward", "q", "gap", "alive")
    }
    for k, trace in enumerate(traces):
        length = len(trace.reward)
        record["reward"][:length, k] = trace.reward
        record["alive"][:length, k] = 1
        if trace.q:
            record["q"][:length, k] = trace.q
            record["gap"][:length, k] = trace.gap
    ended = jnp.asarray([trace.terminated for trace in traces])
    columns = {name: jnp.asarray(values) for name, values in record.items()}
    return measured(columns, ended, gamma, clip_rewards)


measured = jax.jit(measure, static_argnums=3)
