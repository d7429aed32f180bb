"""A trained policy: act, look at its values, save and load. One safetensors file, no pickle."""

import functools
import math
import operator
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, SupportsFloat

import jax.numpy as jnp
import numpy as np

from rbve.algorithms import Acting
from rbve.data.features import Features
from rbve.data.inputs import network_input
from rbve.networks.recurrent import Seen
from rbve.policy import file
from rbve.policy.inputs import is_named, read_legal, read_rows
from rbve.policy.network import Actor, act_function, forward, recall, shown
from rbve.policy.trained import TrainedAs
from rbve.types import Array, Head


@dataclass(frozen=True)
class Policy:
    algorithm: Acting
    options: Any  # the algorithm's Options
    config: Any  # the algorithm's Config
    network: Any  # a Network, or a Recurrent where it has a memory
    obs_shape: tuple[int, ...]
    actions: tuple[str, ...]  # names; the index is the id
    hidden: tuple[int, ...]
    info: Mapping[str, Any] = field(default_factory=dict)  # where the policy comes from
    features: Features | None = None  # what the columns of a flat observation mean
    torso: str = "auto"
    memory: int = 0  # units; with them decisions are made by what start() gives
    rescaled: bool = False  # the network says h(Q)
    masked: bool = False  # the data says which actions are legal, so decisions have to be told

    def start(self) -> "Session":
        """An episode of decisions, for policies with a memory and those without."""
        return Session(self)

    def act(
        self,
        observation: Any,
        epsilon: float = 0.0,
        rng: np.random.Generator | None = None,
        legal: Any = None,
    ) -> int | np.ndarray:
        """The best action id for one observation, or an array of them for a batch.

        Where the data had named columns, an observation may be a row of it, {"age": 61, ...}, or
        a list of rows. `legal` says which actions may be taken: True or False for each (or 1 and
        0), or a list of ids or names, once or for each observation, or "all"; it is needed where
        the data had such masks. With `epsilon` a share of the actions is random, drawn from `rng`.
        """
        if epsilon > 0 and rng is None:
            raise ValueError("random actions need rng=numpy.random.default_rng(seed), made once")
        obs, single = self._batch(observation)
        mask = self._mask(legal, len(obs))
        scores = self._scores(self._heads(obs), mask)
        action = np.argmax(scores, axis=-1)
        if rng is not None and epsilon > 0:
            chance = rng.random(scores.shape)
            random = np.argmax(chance if mask is None else np.where(mask, chance, -1.0), axis=-1)
            action = np.where(rng.random(action.shape) < epsilon, random, action)
        return int(action[0]) if single else action

    def decide(self, observation: Any, legal: Any = None) -> str | list[str]:
        """The best action by name, as the log called it."""
        chosen = self.act(observation, legal=legal)
        if isinstance(chosen, int):
            return self.actions[chosen]
        return [self.actions[index] for index in chosen]

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

    def scores(self, observations: Any, legal: Any = None) -> np.ndarray:
        """What the policy maximises: Q, filtered Q (BCQ) or logits (BC), low where illegal."""
        obs, single = self._batch(observations)
        mask = self._mask(legal, len(obs))
        values = self._scores(self._heads(obs), mask)
        return values[0] if single else values

    def check(self, observations: Any) -> list[str]:
        """What in rows of named columns lies far outside the data the policy learned from.

        Numbers more than a tenth of the data's range beyond it, and categories it does not hold;
        each is named by row and column. Deciding on such rows given by name warns of them.
        """
        if self.features is None:
            return []
        return self.features.far(read_rows(observations, self.obs_shape, self.features)[0])

    def _scores(self, head: Head, mask: np.ndarray | None) -> np.ndarray:
        return np.asarray(self.algorithm.scores(head, mask, self.config, self.options))

    def _mask(self, legal: Any, count: int) -> np.ndarray | None:
        return read_legal(legal, self.actions, count, self.masked)

    def act_function(self) -> Actor:
        return act_function(
            self.algorithm, self.options, lambda network: network, self.features, self.rescaled
        )

    def save(self, path: str | Path) -> None:
        """One file, which `Policy.load` reads."""
        file.write(Path(path), self)

    @staticmethod
    def load(path: str | Path, algorithm: str | Path | None = None) -> "Policy":
        """A policy that `save` wrote.

        Loading runs no code that the file names. A policy whose algorithm file has `scores` of its
        own needs that file again as `algorithm`.
        """
        return Policy(**file.read(Path(path), None if algorithm is None else str(algorithm)))

    @functools.cached_property
    def trained(self) -> TrainedAs:
        """How it was trained, as far as `info` says."""
        return TrainedAs.of(self.info)

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.obs_shape if self.features is None else (self.features.size,)

    def _batch(self, observation: Any) -> tuple[np.ndarray, bool]:
        """Observations (B, ...) as the dataset holds them, and whether one alone was given. Rows by
        column name with values far outside the training data draw a warning."""
        obs, single = read_rows(observation, self.obs_shape, self.features)
        if self.features and is_named(observation) and (far := self.features.far(obs)):
            more = f" (and {len(far) - 1} more)" if len(far) > 1 else ""
            warnings.warn(f"far outside the training data: {far[0]}{more}", stacklevel=3)
        return obs, single

    def _heads(self, obs: np.ndarray) -> Head:
        if self.memory:
            raise ValueError(
                "this policy has a memory: begin an episode with session = policy.start() and call "
                "session.act(observation, last_reward)"
            )
        return self.shown(forward(self.network, self.input(obs)))

    def input(self, obs: np.ndarray) -> Array:
        """What the network takes. Encoded on the host, in the width the log has: float32 would cut
        large numbers short."""
        seen = network_input(obs if self.features is None else self.features.encode(obs))
        finite = np.isfinite(seen).reshape(len(seen), -1).all(axis=1)
        if not finite.all():
            row = f"row {int(np.argmin(finite))} of the observations"
            raise ValueError(f"{row} holds values that are not finite in 32 bits")
        return jnp.asarray(seen)

    def shown(self, head: Head) -> Head:
        return shown(head, self.rescaled and self.algorithm.values)


class Session:
    """One episode: remembers what the policy saw, did and received."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.scores: np.ndarray | None = None  # (A,) of the last observation, as Policy.scores
        self._last_action = -1
        self._memory: Any = policy.network.start(1) if policy.memory else None
        self._first = True

    @property
    def last_action(self) -> int:
        """What was done last; −1 at first."""
        return self._last_action

    @last_action.setter
    def last_action(self, action: int | str) -> None:
        """By id or by name."""
        names = self.policy.actions
        try:
            found = names.index(action) if isinstance(action, str) else operator.index(action)
        except (TypeError, ValueError):
            found = -1
        if not 0 <= found < len(names):
            raise ValueError(
                f"last_action must be an id in [0, {len(names) - 1}] or one of {', '.join(names)}; "
                f"got {action!r}"
            )
        self._last_action = found

    def act(self, observation: Any, last_reward: float | None = None, legal: Any = None) -> int:
        """The best action id; `last_reward` is what the last one brought.

        A policy with memory needs it of every step but the first. `legal` is what Policy.act takes.

        Where something else was done than what this said, set `last_action` before the next call.
        """
        obs, single = self.policy._batch(observation)
        if not single:
            raise ValueError("a session takes one observation at a time")
        if last_reward is None and self.policy.memory and not self._first:
            raise ValueError("this policy learned from rewards too: give last_reward")
        reward = 0.0 if last_reward is None else last_reward
        if not isinstance(reward, SupportsFloat) or not math.isfinite(reward):
            raise ValueError(f"last_reward must be a finite number; got {reward!r}")
        # Checked before the memory moves on, so that a call that failed can be made again.
        mask = self.policy._mask(legal, 1)
        head = self._recalled(obs, 0.0 if self._first else reward)
        self.scores = self.policy._scores(head, mask)[0]
        self._first = False
        self._last_action = int(np.argmax(self.scores))
        return self._last_action

    def _recalled(self, obs: np.ndarray, last_reward: float) -> Head:
        policy = self.policy
        if not policy.memory:
            return policy._heads(obs)
        seen = Seen(
            policy.input(obs)[None],
            jnp.full((1, 1), self._last_action, jnp.int32),
            jnp.full((1, 1), last_reward, jnp.float32),
            jnp.full((1, 1), self._first),
        )
        head, self._memory = recall(policy.network, seen, self._memory)
        return policy.shown(head)

    def decide(self, observation: Any, last_reward: float | None = None, legal: Any = None) -> str:
        """The best action by name."""
        return self.policy.actions[self.act(observation, last_reward, legal)]
