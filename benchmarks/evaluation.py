"""One hundred evaluation episodes of cartpole, all of full length, against bsuite in Python.

A hand-written controller balances the pole, so that every episode has 1001 steps. Inside JAX a
56-56 network is evaluated beside it and its values are recorded, as in a real evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from timing import Figure, Lap, best, interleave, lap, ratio

from rbve import api  # noqa: F401  first, since it prepares the backend

# isort: split
import jax
import jax.numpy as jnp
import numpy as np

from rbve import envs
from rbve.algorithms import NoOptions
from rbve.envs.base import Env
from rbve.evaluation.rollout import EvaluationPlan, make_rollout
from rbve.networks import build

EPISODES, STEPS = 100, 1001
GAINS = np.array([0.3, 0.6, 3.0, 0.0, 0.6, 0.0])  # on x/3, ẋ/3, sin θ, cos θ, θ̇, t


def measure(quick: bool) -> list[Figure]:
    try:
        from bsuite.environments.cartpole import Cartpole
    except ImportError:
        return [Figure("evaluation", "bsuite is not installed: left out", float("nan"), "x")]
    episodes = EPISODES // 10 if quick else EPISODES
    contestants = {
        "controller": compiled(with_network=False),
        "network": compiled(with_network=True),
        "bsuite, controller": lambda: lap(lambda: step_bsuite(Cartpole(), episodes, push)),
        "bsuite, no policy": lambda: lap(lambda: step_bsuite(Cartpole(), episodes, stay)),
    }
    laps = interleave(contestants, rounds=2 if quick else 5)
    scale = EPISODES / episodes  # a quick run steps a tenth of bsuite's episodes
    figures = [
        Figure("evaluation", "100 episodes of 1001 steps, network", best(laps["network"]), "s")
    ]
    for ours in ("network", "controller"):
        for theirs in ("bsuite, controller", "bsuite, no policy"):
            wall, cpu = ratio(laps[theirs], laps[ours])
            note = f"by CPU time {cpu * scale:.0f}x"
            figures.append(Figure("evaluation", f"{ours} / {theirs}", wall * scale, "x", note))
    return figures


def compiled(with_network: bool) -> Callable[[], Lap]:
    env = envs.load("cartpole")
    assert isinstance(env, Env)
    network = build(env.obs_shape, 3, "q", NoOptions(), (56, 56), jax.random.key(0))

    def act(params: Any, config: Any, obs: jax.Array, legal: Any, key: jax.Array) -> Any:
        tilt = obs.reshape(len(obs), -1) @ jnp.asarray(GAINS, jnp.float32)
        scores = jnp.stack([-tilt, jnp.zeros_like(tilt), tilt], axis=-1)
        # The values are recorded at every step, so the network is evaluated at every step.
        return scores, params(obs, key).q if with_network else scores

    rollout = jax.jit(make_rollout(env, act, EvaluationPlan(EPISODES, 0.0, 0.99)))
    found = rollout(network, (), jax.random.key(0))
    if int(jnp.min(found["episode_length"])) != STEPS:
        raise RuntimeError("the controller dropped the pole: episodes are not of full length")
    return lambda: lap(lambda: jax.block_until_ready(rollout(network, (), jax.random.key(1))))


def push(observation: np.ndarray) -> int:
    return 2 if observation[0] @ GAINS > 0 else 0


def stay(observation: np.ndarray) -> int:
    return 1


def step_bsuite(env: Any, episodes: int, policy: Callable[[np.ndarray], int]) -> None:
    moment = env.reset()
    for _ in range(episodes * STEPS):
        moment = env.reset() if moment.last() else env.step(policy(moment.observation))
