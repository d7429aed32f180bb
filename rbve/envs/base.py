"""What an environment is: pure functions inside JAX, or an object outside it.

Ends come in two kinds and are kept apart everywhere: `terminated` says that no value
follows, `truncated` that a limit cut the episode while value would have continued.
"""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rbve import ops
from rbve.envs._host import HostEnv, NoisyHostEnv

State = Any  # a pytree of arrays, private to its environment
_HOST = ("name", "obs_shape", "actions", "executed", "legal", "reset", "step", "close")


class Step(NamedTuple):
    """What one step of a JAX environment gives."""

    obs: Array  # observation after the step, shape env.obs_shape, float or bytes
    reward: Array  # scalar float
    terminated: Array  # bool: the episode ended and later value is 0
    truncated: Array  # bool: cut by a limit; value continues
    executed: Array  # int32: the action the environment executed

    @staticmethod
    def terminating(obs: Array, reward: Array, terminated: Array, executed: Array) -> "Step":
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


@dataclass(frozen=True, eq=False)
class MDP:
    """An environment of S states and A actions in full, for exact values (evaluation/exact.py)."""

    transition: np.ndarray  # (S, A, S) float64: P(s' | s, a)
    reward: np.ndarray  # (S, A, S), or what broadcasts to it: of the step from s to s' by a
    start: np.ndarray  # (S,) probability that an episode begins there
    terminal: np.ndarray  # (S,) bool: no value follows
    legal: np.ndarray | None = None  # (S, A) bool; None = all, everywhere
    gamma: float = 1.0

    @functools.cached_property
    def expected_reward(self) -> np.ndarray:
        """(S, A): Σ_s' P(s' | s, a) r(s, a, s'); 0 where the episode is over."""
        reward = np.broadcast_to(self.reward, self.transition.shape)
        return np.einsum("sat,sat->sa", self.transition, reward) * ~self.terminal[:, None]


def check_noise(epsilon: float) -> None:
    """ValueError where the probability of action noise is none."""
    if not 0.0 <= epsilon <= 1.0:
        raise ValueError(f"action noise is a probability: give 0 <= epsilon <= 1, not {epsilon}")


def with_action_noise(env: Any, epsilon: float) -> Any:
    """An Env or HostEnv that, with probability epsilon, executes a uniformly random action.

    The draw is over all legal actions, so without masks the chosen one is executed with probability
    1 - epsilon + epsilon / len(actions). `Step.executed` tells which it was.
    """
    check_noise(epsilon)
    if epsilon == 0.0:
        return env
    return _noisy(env, float(epsilon)) if isinstance(env, Env) else NoisyHostEnv(env, epsilon)


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


def adopt(env: Any, noise: float = 0.0) -> Env | HostEnv:
    """An environment that a caller made, one of this package's or Gymnasium's, with its noise."""
    if not isinstance(env, Env) and not all(hasattr(env, each) for each in _HOST):
        package = sys.modules.get("gymnasium")
        if package is None or not isinstance(env, package.Env):
            raise ValueError(
                "an environment is a name such as 'catch', what rbve.envs.load gives, or a "
                f"Gymnasium environment; got {type(env).__name__}"
            )
        from rbve.envs.gymnasium import GymnasiumEnv

        name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
        env = GymnasiumEnv(name, env)
    return with_action_noise(env, noise)


class Stepped:
    """A JAX environment stepped from Python, for players that are not functions inside JAX."""

    def __init__(self, env: Env) -> None:
        self.name, self.obs_shape, self.actions = env.name, env.obs_shape, env.actions
        self.executed = -1
        self._reset, self._step, self._legal = _compiled(env)
        self._key, self._state = jax.random.key(0), None

    @property
    def legal(self) -> np.ndarray | None:
        if self._legal is None or self._state is None:
            return None
        return np.asarray(self._legal(self._state))

    def reset(self, seed: int | None = None) -> np.ndarray:
        if seed is not None:
            self._key = jax.random.key(seed)
        self.executed = -1
        self._key, key = jax.random.split(self._key)
        self._state, obs = self._reset(key)
        return np.asarray(obs)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        self._key, key = jax.random.split(self._key)
        self._state, outcome = self._step(self._state, np.int32(action), key)
        self.executed, ended = int(outcome.executed), bool(outcome.terminated)
        truncated = bool(outcome.truncated) and not ended
        return np.asarray(outcome.obs), float(outcome.reward), ended, truncated

    def close(self) -> None:
        """Nothing to free."""


@functools.cache
def _compiled(env: Env) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any] | None]:
    """Its functions, compiled once for all that step it."""
    legal = None if env.legal is None else jax.jit(env.legal)
    return jax.jit(env.reset), jax.jit(env.step), legal
