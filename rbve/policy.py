"""A trained policy: act, look at its values, save and load. One safetensors file, no pickle."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from rbve import algorithms
from rbve.algorithms import Algorithm
from rbve.networks import Network, build
from rbve.training.checkpoint import read_tensors, write_tensors
from rbve.types import Array, Head, Tree


@dataclass(frozen=True)
class Policy:
    algorithm: Algorithm
    options: Any  # the algorithm's Options
    config: Any  # the algorithm's Config
    network: Network
    obs_shape: tuple[int, ...]
    actions: tuple[str, ...]  # names; the index is the id
    hidden: tuple[int, ...]
    info: Mapping[str, Any] = field(default_factory=dict)  # where the policy comes from

    def act(
        self, observation: Any, epsilon: float = 0.0, rng: np.random.Generator | None = None
    ) -> int | np.ndarray:
        """The best action id for one observation, or an array of them for a batch.

        With `epsilon` a share of the actions is random, drawn from `rng`.
        """
        if epsilon > 0 and rng is None:
            raise ValueError("random actions need rng=numpy.random.default_rng(seed), made once")
        obs, single = self._batch(observation)
        action = np.argmax(self.scores(obs), axis=-1)
        if rng is not None and epsilon > 0:
            random = rng.integers(len(self.actions), size=len(obs))
            action = np.where(rng.random(len(obs)) < epsilon, random, action)
        return int(action[0]) if single else action

    def q_values(self, observations: Any) -> np.ndarray:
        """Q(s, ·), one row per observation."""
        if not self.algorithm.values:
            raise ValueError(
                f"{self.algorithm.name} learns which action the data takes, not what it is worth; "
                "use scores(), or train a value algorithm such as rbve"
            )
        obs, single = self._batch(observations)
        values = np.asarray(self._heads(obs).q)
        return values[0] if single else values

    def scores(self, observations: Any) -> np.ndarray:
        """What the policy maximises: Q, filtered Q (BCQ) or logits (BC)."""
        obs, single = self._batch(observations)
        head = self._heads(obs)
        values = np.asarray(self.algorithm.scores(head, None, self.config, self.options))
        return values[0] if single else values

    def act_function(self) -> Any:
        """(params, config, obs, key) -> scores, values; for rollouts inside JAX."""
        return act_function(self.algorithm, self.options, lambda network: network)

    def save(self, path: str | Path) -> None:
        vector = ravel_pytree(self.network)[0]
        info = {
            "kind": "policy",
            "algorithm": self.algorithm.name,
            "options": dataclasses.asdict(self.options),
            "config": {name: float(value) for name, value in self.config._asdict().items()},
            "obs_shape": self.obs_shape,
            "actions": self.actions,
            "hidden": self.hidden,
            "info": dict(self.info),
        }
        write_tensors(Path(path), {"weights": np.asarray(vector)}, info)

    @staticmethod
    def load(path: str | Path) -> Policy:
        arrays, info = read_tensors(Path(path))
        if info.get("kind") != "policy" or "weights" not in arrays:
            raise ValueError(f"{path}: not a saved policy")
        algorithm = algorithms.load(info["algorithm"])
        options = algorithm.options(**info["options"])
        obs_shape, hidden = tuple(info["obs_shape"]), tuple(info["hidden"])
        empty = build(
            obs_shape, len(info["actions"]), algorithm.head, options, hidden, jax.random.key(0)
        )
        vector, unravel = ravel_pytree(empty)
        if arrays["weights"].shape != vector.shape:
            raise ValueError(f"{path}: {arrays['weights'].shape} weights, expected {vector.shape}")
        return Policy(
            algorithm=algorithm,
            options=options,
            config=algorithm.config(**info["config"]),
            network=unravel(jnp.asarray(arrays["weights"])),
            obs_shape=obs_shape,
            actions=tuple(info["actions"]),
            hidden=hidden,
            info=info["info"],
        )

    def _batch(self, observation: Any) -> tuple[np.ndarray, bool]:
        obs = np.asarray(observation, np.float32)
        if obs.shape == self.obs_shape:
            return obs[None], True
        if obs.shape[1:] != self.obs_shape or obs.ndim == 0:
            raise ValueError(
                f"an observation has shape {self.obs_shape} ({math.prod(self.obs_shape)} numbers); "
                f"got {obs.shape}"
            )
        return obs, False

    def _heads(self, obs: np.ndarray) -> Head:
        return forward(self.network, jnp.asarray(obs))


@eqx.filter_jit
def forward(network: Network, obs: Array) -> Head:
    # Quantile networks sample; a fixed key makes acting repeatable.
    return network(obs, jax.random.key(0))


def act_function(algorithm: Algorithm, options: Any, unravel: Any) -> Any:
    """The policy as a pure function of its parameters."""

    def act(params: Tree, config: Tree, obs: Array, key: Array) -> tuple[Array, Array]:
        head = unravel(params)(obs, key)
        return algorithm.scores(head, None, config, options), head.q

    return act
