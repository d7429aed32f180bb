"""Who decides in lanes: a policy, a caller's function, a script that reads the console's memory, or
nobody."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np

from rbve.evaluation.fit import category_codes, frames_joined
from rbve.evaluation.lanes import LANES, Decision, Lanes, Outcome
from rbve.networks.recurrent import Seen
from rbve.policy import Policy, forward, recall
from rbve.policy.legal import action_id
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


class FunctionPlayer:
    """A caller's function of one observation, and of the legal actions if it has such a parameter.

    It gives an id or a name. Legal actions are booleans, or None where all are legal.
    """

    stack = 1

    def __init__(self, function: Callable[..., Any], actions: Sequence[str]) -> None:
        self.function, self.actions = function, actions
        self.told = takes_legal(function)

    def begin(self, lane: int) -> None:
        """Nothing to begin."""

    def decide(
        self, obs: np.ndarray, legal: np.ndarray | None, waiting: Mapping[int, Outcome]
    ) -> Decision:
        best = np.zeros(LANES, np.int64)
        for lane in waiting:
            mask = None if legal is None else legal[lane].copy()
            seen = obs[lane].copy()
            chosen = self.function(seen, mask) if self.told else self.function(seen)
            best[lane] = action_id(chosen, self.actions)
            if mask is not None and not mask[best[lane]]:
                raise ValueError(
                    f"the policy chose action {chosen!r} where {np.flatnonzero(mask).tolist()} are "
                    "legal; a function with a second parameter, legal, is told which are"
                )
        return Decision(best)


def takes_legal(function: Callable[..., Any]) -> bool:
    """Whether it has a second parameter that is called `legal` or has to be given."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # of some built-in functions nothing is known
        return False
    placed = [
        each
        for each in parameters
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    return any(each.name == "legal" or each.default is each.empty for each in placed[1:2])


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
