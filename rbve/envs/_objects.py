"""Environments that a caller made: those of this package, and Gymnasium's."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from rbve.envs import base
from rbve.envs.base import Env, HostEnv, Step

HOST = ("name", "obs_shape", "actions", "executed", "legal", "reset", "step", "close")


def adopt(env: Any, noise: float = 0.0) -> Env | HostEnv:
    """An environment object as this package plays it, with action noise where that is asked."""
    base.check_noise(noise)
    if isinstance(env, Env):
        return base.with_action_noise(env, noise)
    host = env if all(hasattr(env, each) for each in HOST) else from_gymnasium(env)
    return base.NoisyHostEnv(host, noise) if noise > 0.0 else host


def from_gymnasium(env: Any) -> HostEnv:
    package = sys.modules.get("gymnasium")
    if package is None or not isinstance(env, package.Env):
        raise ValueError(
            "an environment is a name such as 'catch', what rbve.envs.load gives, or a Gymnasium "
            f"environment; got {type(env).__name__}"
        )
    from rbve.envs.gymnasium import GymnasiumEnv

    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    made: HostEnv = GymnasiumEnv(name, env)
    return made


class Stepped:
    """A JAX environment stepped from Python, for players that are not functions inside JAX."""

    def __init__(self, env: Env) -> None:
        self.name, self.obs_shape, self.actions = env.name, env.obs_shape, env.actions
        self.executed = -1
        self._reset, self._step, self._legal = compiled(env)
        self._key = jax.random.key(0)
        self._state: Any = None

    @property
    def legal(self) -> np.ndarray | None:
        if self._legal is None or self._state is None:
            return None
        return np.asarray(self._legal(self._state))

    def reset(self, seed: int | None = None) -> np.ndarray:
        if seed is not None:
            self._key = jax.random.key(seed)
        self.executed = -1
        self._state, obs = self._reset(self._next_key())
        return np.asarray(obs)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        said: Step
        self._state, said = self._step(self._state, np.int32(action), self._next_key())
        self.executed = int(said.executed)
        ended = bool(said.terminated)
        return np.asarray(said.obs), float(said.reward), ended, bool(said.truncated) and not ended

    def close(self) -> None:
        """Nothing to free."""

    def _next_key(self) -> jax.Array:
        self._key, key = jax.random.split(self._key)
        return key


@functools.cache
def compiled(env: Env) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any] | None]:
    """Its functions, compiled once for all that step it."""
    legal = None if env.legal is None else jax.jit(env.legal)
    return jax.jit(env.reset), jax.jit(env.step), legal
