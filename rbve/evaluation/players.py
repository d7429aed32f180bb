"""Who decides in lanes: a policy, a script that reads the console's memory, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import jax.numpy as jnp
import numpy as np

from rbve.evaluation.fit import category_codes, frames_joined
from rbve.evaluation.lanes import LANES, Decision, Lanes, Outcome
from rbve.networks.recurrent import Seen
from rbve.policy import Policy, forward, recall
from rbve.types import Array, Head


class PolicyPlayer:
    """One forward pass for all lanes."""

    @staticmethod
    def for_lanes(policy: Policy, lanes: Lanes) -> PolicyPlayer:
        codes = category_codes(lanes, policy.features)
        return PolicyPlayer(policy, frames_joined(lanes, policy), codes)

    def __init__(self, policy: Policy, stack: int = 1, codes: np.ndarray | None = None) -> None:
        self.policy, self.stack, self.codes = policy, stack, codes
        self.memory = policy.network.start(LANES) if policy.memory else None
        self.fresh: set[int] = set()  # lanes whose episode has just begun

    def begin(self, lane: int) -> None:
        self.fresh.add(lane)

    def decide(
        self, obs: np.ndarray, legal: np.ndarray | None, waiting: Mapping[int, Outcome]
    ) -> Decision:
        policy = self.policy
        if self.codes is not None:  # one-hot values become the data's categories
            obs = self.codes[obs.argmax(axis=-1)][:, None]
        head = self.heads(policy.input(obs), waiting)
        scores = policy.algorithm.scores(head, legal, policy.config, policy.options)
        q = np.asarray(policy.shown(head).q) if policy.algorithm.values else None
        return Decision(np.argmax(np.asarray(scores), axis=-1), q)

    def heads(self, obs: Array, waiting: Mapping[int, Outcome]) -> Head:
        if self.memory is None:
            return forward(self.policy.network, obs)
        action, reward = np.full(LANES, -1, np.int32), np.zeros(LANES, np.float32)
        for lane, outcome in waiting.items():
            action[lane], reward[lane] = outcome.action, outcome.reward
        first = np.isin(np.arange(LANES), list(self.fresh))
        self.fresh.clear()
        seen = Seen(*(jnp.asarray(each)[None] for each in (obs, action, reward, first)))
        head, self.memory = recall(self.policy.network, seen, self.memory)
        return head


class UniformPlayer:
    """Decides nothing: play it with epsilon 1."""

    stack = 1

    def begin(self, lane: int) -> None:
        """Nothing to begin."""

    def decide(
        self, obs: np.ndarray, legal: np.ndarray | None, waiting: Mapping[int, Outcome]
    ) -> Decision:
        return Decision(np.zeros(LANES, np.int64))


class Script(Protocol):
    """A player of one episode."""

    def act(self, ram: np.ndarray) -> int:
        """The action for what the environment's `ram` holds now."""


class ScriptPlayer:
    """A fresh script for every episode."""

    stack = 1

    def __init__(self, make: Callable[[], Script]) -> None:
        self.make = make
        self.scripts: dict[int, Script] = {}

    def begin(self, lane: int) -> None:
        self.scripts[lane] = self.make()

    def decide(
        self, obs: np.ndarray, legal: np.ndarray | None, waiting: Mapping[int, Outcome]
    ) -> Decision:
        best = np.zeros(LANES, np.int64)
        for lane, outcome in waiting.items():
            if outcome.ram is None:
                raise ValueError("a script reads an environment's ram, and this one has none")
            best[lane] = self.scripts[lane].act(outcome.ram)
        return Decision(best)
