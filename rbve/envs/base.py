"""What an environment is: pure functions inside JAX, or an object outside it.

Ends come in two kinds and are kept apart everywhere: `terminated` says that no value
follows, `truncated` that a limit cut the episode while value would have continued.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rbve import ops

State = Any  # a pytree of arrays, private to its environment


class Step(NamedTuple):
    """What one step of a JAX environment gives."""

    obs: Array  # observation after the step, shape env.obs_shape, float or bytes
    reward: Array  # scalar float
    terminated: Array  # bool: the episode ended and later value is 0
    truncated: Array  # bool: cut by a limit; value continues
    executed: Array  # int32: the action the environment executed

    @staticmethod
    def terminating(obs: Array, reward: Array, terminated: Array, executed: Array) -> Step:
        """Of an environment whose every end is a termination."""
        return Step(obs, reward, terminated, jnp.zeros_like(terminated), executed)


class Env(NamedTuple):
    """A JAX environment. It never resets itself: after an end the caller calls `reset`.

    Floats have JAX's default width: 32 bits, or 64 under `jax_enable_x64`.
    """

    name: str  # what `rbve.envs.load` takes
    obs_shape: tuple[int, ...]
    actions: tuple[str, ...]  # action names, index = id
    max_steps: int  # no episode is longer
    reset: Callable[[Array], tuple[State, Array]]  # key -> state, obs
    step: Callable[[State, Array, Array], tuple[State, Step]]  # state, action, key
    legal: Callable[[State], Array] | None = None  # state -> (A,) bool; None = all, always


class HostEnv(Protocol):
    """An environment outside JAX, stepped from Python."""

    name: str  # what `rbve.envs.load` takes
    obs_shape: tuple[int, ...]
    actions: tuple[str, ...]  # action names, index = id
    executed: int  # the action last executed; -1 before the first

    @property
    def legal(self) -> np.ndarray | None:
        """(A,) bool, what may be done now; None = everything."""

    def reset(self, seed: int | None = None) -> np.ndarray:
        """Starts an episode. A seed fixes all that follows; None goes on with the old one."""

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """Gives obs, reward, terminated, truncated; at most one of the two ends is True."""

    def close(self) -> None:
        """Frees what the environment holds."""


def check_noise(epsilon: float) -> float:
    """Gives back a probability of action noise, or says what is wrong with it."""
    if not 0.0 <= epsilon <= 1.0:
        raise ValueError(f"action noise is a probability: give 0 <= epsilon <= 1, not {epsilon}")
    return float(epsilon)


def with_action_noise(env: Env, epsilon: float) -> Env:
    """An environment that, with probability epsilon, executes a uniformly random action.

    The draw is over all legal actions, so without masks the chosen one is executed with probability
    1 - epsilon + epsilon / len(actions). `Step.executed` tells which it was.
    """
    epsilon = check_noise(epsilon)
    return _noisy(env, epsilon) if epsilon > 0.0 else env


@functools.cache  # equal noise gives the identical functions, so that compiled code is shared
def _noisy(env: Env, epsilon: float) -> Env:
    def step(state: State, action: Array, key: Array) -> tuple[State, Step]:
        noise_key, step_key = jax.random.split(key)
        # One draw of two numbers is two to four times cheaper than bernoulli and randint.
        strike, which = jax.random.uniform(noise_key, (2,))
        legal = None if env.legal is None else env.legal(state)
        random_action = ops.uniform_action(which, len(env.actions), legal)
        executed = jnp.where(strike < epsilon, random_action, action)
        return env.step(state, executed, step_key)

    return env._replace(step=step)


class NoisyHostEnv:
    """`with_action_noise` for an environment outside JAX."""

    def __init__(self, env: HostEnv, epsilon: float) -> None:
        self.name, self.obs_shape, self.actions = env.name, env.obs_shape, env.actions
        self.executed, self._env = -1, env
        self._epsilon = check_noise(epsilon)
        self._rng = np.random.default_rng()

    def reset(self, seed: int | None = None) -> np.ndarray:
        if seed is not None:
            # The spawn key keeps the noise independent of the environment's own draws,
            # which may start from the same seed.
            self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        self.executed = -1
        return self._env.reset(seed)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        if self._rng.random() < self._epsilon:
            action = random_action(self._rng, len(self.actions), self.legal)
        result = self._env.step(action)
        self.executed = self._env.executed
        return result

    @property
    def legal(self) -> np.ndarray | None:
        return self._env.legal

    @property
    def ram(self) -> np.ndarray | None:
        return getattr(self._env, "ram", None)

    @property
    def categories(self) -> tuple[str, ...]:
        return categories(self._env)

    @property
    def shows_final(self) -> bool:
        return shows_final(self._env)

    def close(self) -> None:
        self._env.close()


def shows_final(env: HostEnv) -> bool:
    """Whether a truncated episode ends with a view of its own; most environments do not say."""
    return getattr(env, "shows_final", True)


def categories(env: Any) -> tuple[str, ...]:
    """The values that a one-hot observation stands for; none where observations are numbers."""
    return getattr(env, "categories", ())


def random_action(rng: np.random.Generator, actions: int, legal: np.ndarray | None) -> int:
    """Any legal action alike."""
    return int(rng.integers(actions) if legal is None else rng.choice(np.flatnonzero(legal)))
