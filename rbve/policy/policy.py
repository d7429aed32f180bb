"""A trained policy: act, look at its values, save and load. One safetensors file, no pickle."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from rbve.algorithms import Acting
from rbve.data.features import Features
from rbve.data.inputs import network_input
from rbve.policy import core, file
from rbve.policy.fallback import with_fallback
from rbve.policy.network import Actor, act_function, shown
from rbve.policy.support import Support
from rbve.policy.trained import TrainedAs
from rbve.runtime.decider import Decider, Decisions
from rbve.runtime.inputs import read_rows
from rbve.runtime.session import Session
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
    support: Support | None = None  # what tells decisions that the log has no support for

    def start(self) -> Session:
        """An episode of decisions, for policies with a memory and those without.

        Example:
            >>> session = policy.start()
            >>> session.decide({"age": 61, "blood_pressure": 158, "ward": "B"}) in policy.actions
            True
        """
        return Session(self.decider)

    def act(
        self,
        observation: Any,
        epsilon: float = 0.0,
        rng: np.random.Generator | None = None,
        legal: Any = None,
    ) -> int | np.ndarray:
        """The best action id for one observation, or an array of them for a batch.

        Args:
            observation: As the dataset holds it, or (B, ...) of them. Where the data had named
                columns it may be a row of it, {"age": 61, ...}, or a list of rows.
            epsilon: Share of random actions.
            rng: Draws them.
            legal: Which actions may be taken: True or False for each (or 1 and 0), or a list of ids
                or names, once or for each observation, or "all". Needed where the data had masks.

        Returns:
            An id, or (B,) ids.

        Example:
            >>> policy.act([{"age": 61, "blood_pressure": 158, "ward": "B"}], legal=["none"])
            array([1])
        """
        if epsilon > 0 and rng is None:
            raise ValueError("random actions need rng=numpy.random.default_rng(seed), made once")
        action = self.decider.act(observation, legal)
        if rng is None or not epsilon > 0:
            return action
        count = np.size(action)
        mask = self.decider.mask(legal, count)
        chance = rng.random((count, len(self.actions)))
        random = np.argmax(chance if mask is None else np.where(mask, chance, -1.0), axis=-1)
        chosen = np.where(rng.random(count) < epsilon, random, action)
        return int(chosen[0]) if isinstance(action, int) else chosen

    def decide(self, observation: Any, legal: Any = None) -> str | list[str]:
        """The best action by name, as the log called it.

        Args:
            observation: As `act` takes it.
            legal: As `act` takes it.

        Example:
            >>> policy.decide({"age": 61, "blood_pressure": 158, "ward": "B"}, legal=["none"])
            'none'
        """
        return self.decider.decide(observation, legal)

    def decisions(self, observation: Any, legal: Any = None) -> Decisions:
        """What is known of each decision: action, values, gap, whether the data supports it.

        Args:
            observation: As `act` takes it.
            legal: As `act` takes it.

        Example:
            >>> made = policy.decisions([{"age": 61, "blood_pressure": 158, "ward": "B"}] * 4)
            >>> made.q.shape, made.supported.tolist()
            ((4, 3), [True, True, True, True])
        """
        return self.decider.decisions(observation, legal)

    def q_values(self, observations: Any) -> np.ndarray:
        """Q(s, ·), one row per observation.

        Args:
            observations: As `act` takes them.

        Returns:
            (B, A), in the units of the rewards.

        Raises:
            ValueError: The policy learned no values (cloning).

        Example:
            >>> policy.q_values(log.obs[:5]).shape
            (5, 3)
        """
        if not self.algorithm.values:
            raise ValueError(
                f"{self.algorithm.name} learns which action the data takes, not what it is worth; "
                "use scores(), or train a value algorithm such as rbve"
            )
        return self.decider.q_values(observations)

    def scores(self, observations: Any, legal: Any = None) -> np.ndarray:
        """What the policy maximises: Q, filtered Q (BCQ) or logits (BC), low where illegal.

        Args:
            observations: As `act` takes them.
            legal: As `act` takes it.

        Returns:
            (B, A).

        Example:
            >>> bool((policy.scores(log.obs[:5]) == policy.q_values(log.obs[:5])).all())
            True
        """
        return self.decider.scores(observations, legal)

    @functools.cached_property
    def decider(self) -> Decider:
        """What decides, with NumPy: compiles nothing, whatever the size of a batch."""
        return core.decider_of(self)

    def check(self, observations: Any) -> list[str]:
        """What in rows of named columns lies far outside the data the policy learned from.

        Numbers more than a tenth of the data's range beyond it, and categories it does not hold;
        each is named by row and column. Deciding on such rows given by name warns of them.

        Args:
            observations: As `act` takes them.

        Example:
            >>> policy.check({"age": 610, "blood_pressure": 158, "ward": "B"})  # doctest: +ELLIPSIS
            ["row 0: ...age...610..."]
        """
        if self.features is None:
            return []
        return self.features.far(read_rows(observations, self.obs_shape, self.features)[0])

    def act_function(self) -> Actor:
        """Its decisions inside JAX, with the fallback where it is shipped with one."""
        own = act_function(
            self.algorithm, self.options, lambda network: network, self.features, self.rescaled
        )
        if self.support is None:
            return own
        model = self.support.behaviour.act_function()
        return with_fallback(own, model, self.support, self.features)

    def save(self, path: str | Path) -> None:
        """One file, which `Policy.load` reads.

        Args:
            path: Of the file; its folder has to be there.

        Example:
            >>> policy.save("mine.safetensors")
        """
        file.write(Path(path), self)

    @staticmethod
    def load(path: str | Path, algorithm: str | Path | None = None) -> "Policy":
        """A policy that `save` wrote.

        Loading runs no code that the file names. A policy whose algorithm file has `scores` of its
        own needs that file again as `algorithm`.

        Args:
            path: Of the file.
            algorithm: The algorithm's file, of a policy that needs it.

        Raises:
            ValueError: It is no policy, damaged, or needs its algorithm's file.

        Example:
            >>> rbve.Policy.load("policy.safetensors").algorithm.name
            'bve'
        """
        fields = file.read(Path(path), None if algorithm is None else str(algorithm))
        if "support" in fields:
            behaviour, settings = fields["support"]
            fields["support"] = Support(Policy(**behaviour), **settings)
        return Policy(**fields)

    @functools.cached_property
    def trained(self) -> TrainedAs:
        """How it was trained, as far as `info` says."""
        return TrainedAs.of(self.info)

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.obs_shape if self.features is None else (self.features.size,)

    def input(self, obs: np.ndarray) -> Array:
        """What the network takes, of observations (B, ...) as the dataset holds them."""
        return jnp.asarray(
            network_input(obs if self.features is None else self.features.encode(obs))
        )

    def shown(self, head: Head) -> Head:
        return shown(head, self.rescaled and self.algorithm.values)
