"""Environments outside JAX, stepped from Python: the protocol, and what adapters share."""

import importlib
import math
from collections.abc import Iterable
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from rbve.registry import did_you_mean


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


class EngineEnv:
    """A `HostEnv` around an engine: it is stepped between a reset and an end only.

    Adapters say by `_begin(seed)` how an episode starts and by `_act(action)` what a step gives.
    """

    name: str
    legal: np.ndarray | None = None  # every action, always
    executed = -1
    max_steps: float = math.inf  # a longer episode is truncated
    _steps = -1  # of the running episode; −1 outside one

    def _begin(self, seed: int | None) -> np.ndarray:
        raise NotImplementedError

    def _act(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        raise NotImplementedError

    def reset(self, seed: int | None = None) -> np.ndarray:
        self.executed, self._steps = -1, 0
        return self._begin(seed)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        if self._steps < 0:
            raise ValueError(f"{self.name}: stepped outside an episode; call reset() first")
        obs, reward, terminated, truncated = self._act(action)
        self.executed = int(action)
        self._steps += 1
        truncated = truncated or (not terminated and self._steps >= self.max_steps)
        if terminated or truncated:
            self._steps = -1
        return obs, float(reward), terminated, truncated

    def close(self) -> None:
        self._steps = -1


class NoisyHostEnv:
    """`with_action_noise` for an environment outside JAX, whose other attributes it has."""

    def __init__(self, env: HostEnv, epsilon: float) -> None:
        self._env, self._epsilon, self._rng = env, epsilon, np.random.default_rng()
        self.executed = -1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a copy that is not filled yet has no environment to ask
            raise AttributeError(name)
        return getattr(self._env, name)

    def reset(self, seed: int | None = None) -> np.ndarray:
        if seed is not None:
            # The spawn key keeps the noise independent of the environment's own draws,
            # which may start from the same seed.
            self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        self.executed = -1
        return self._env.reset(seed)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        if self._rng.random() < self._epsilon:
            action = random_action(self._rng, len(self._env.actions), self._env.legal)
        outcome = self._env.step(action)
        self.executed = self._env.executed
        return outcome


def shows_final(env: HostEnv) -> bool:
    """Whether a truncated episode ends with a view of its own; most environments do not say."""
    return getattr(env, "shows_final", True)


def categories(env: Any) -> tuple[str, ...]:
    """The values that a one-hot observation stands for; none where observations are numbers."""
    return getattr(env, "categories", ())


def random_action(rng: np.random.Generator, actions: int, legal: np.ndarray | None) -> int:
    """Any legal action alike."""
    return int(rng.integers(actions) if legal is None else rng.choice(np.flatnonzero(legal)))


def load_packages(needs: str, *packages: str) -> list[ModuleType]:
    """Imports what an adapter is made of; else ImportError with `needs`, how to install it."""
    try:
        return [importlib.import_module(package) for package in packages]
    except ImportError as error:
        raise ImportError(needs.replace("{error}", str(error))) from error


def check_option(wrong: str, kind: str, option: str, known: Iterable[str]) -> None:
    """ValueError where `kind` has no such option; `wrong` is how the message begins."""
    if option not in (known := list(known)):
        hint = did_you_mean(option, known, f"{kind}:")
        raise ValueError(f"{wrong}.{hint} Known: {', '.join(known)}")
