"""Who decides outside JAX: a policy, a caller's function, a script, or chance alone."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np

from rbve.evaluation.fit import Interface, category_codes, check_fit
from rbve.evaluation.vector import WIDTH, Decision, HostActor, Outcome, VectorEnv
from rbve.networks.recurrent import Seen
from rbve.policy import Policy, forward, recall
from rbve.policy.fallback import decided
from rbve.runtime.inputs import action_id
from rbve.types import Array, Head

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class UniformActor(HostActor):
    """Decides nothing: play it with epsilon 1."""


class PolicyActor(HostActor):
    def __init__(self, policy: Policy, stack: int = 1, codes: np.ndarray | None = None) -> None:
        self.policy, self.stack, self.codes = policy, stack, codes
        self.memory = policy.network.start(WIDTH) if policy.memory else None
        self.fresh: set[int] = set()  # environments whose episode has just begun
        self.model: PolicyActor | None = None  # of the behaviour, where there is a fallback
        if policy.support is not None:
            self.model = PolicyActor(policy.support.behaviour, stack)

    def begin(self, index: int) -> None:
        """Its memory is emptied at the next decision."""
        self.fresh.add(index)
        if self.model is not None:
            self.model.begin(index)

    def decide(self, obs: np.ndarray, legal: Any, last: Mapping[int, Outcome]) -> Decision:
        policy = self.policy
        if self.codes is not None:  # one-hot values become the data's categories
            obs = self.codes[obs.argmax(axis=-1)][:, None]
        inputs = policy.input(obs)
        head = self._heads(inputs, last)
        scores = policy.algorithm.scores(head, legal, policy.config, policy.options)
        q = np.asarray(policy.shown(head).q) if policy.algorithm.values else None
        if self.model is None or policy.support is None:
            return Decision(np.argmax(np.asarray(scores), axis=-1), q)
        logits = self.model._heads(inputs, last).q
        action = decided(scores, logits, legal, obs, policy.support, policy.features)
        return Decision(np.asarray(action), q)

    def _heads(self, obs: Array, last: Mapping[int, Outcome]) -> Head:
        if self.memory is None:
            return forward(self.policy.network, obs)
        action, reward = np.full(WIDTH, -1, np.int32), np.zeros(WIDTH, np.float32)
        for index, outcome in last.items():
            action[index], reward[index] = outcome.action, outcome.reward
        first = np.isin(np.arange(WIDTH), list(self.fresh))
        self.fresh.clear()
        seen = Seen(*(jnp.asarray(each)[None] for each in (obs, action, reward, first)))
        head, self.memory = recall(self.policy.network, seen, self.memory)
        return head


class FunctionActor(HostActor):
    """A caller's function of one observation, and of the legal actions if it has such a parameter.
    It gives an id or a name. Legal actions are booleans, or None where all are legal."""

    def __init__(self, function: Callable[..., Any], actions: Sequence[str]) -> None:
        self.function, self.actions = function, actions
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # of some built-in functions nothing is known
            parameters = []
        # Whether it has a second parameter that is called `legal` or has no default.
        second = [each for each in parameters if each.kind in _POSITIONAL][1:2]
        self.takes_legal = any(p.name == "legal" or p.default is p.empty for p in second)

    def decide(self, obs: np.ndarray, legal: Any, last: Mapping[int, Outcome]) -> Decision:
        best = np.zeros(WIDTH, np.int64)
        for index in last:
            mask = None if legal is None else legal[index].copy()
            seen = obs[index].copy()
            chosen = self.function(seen, mask) if self.takes_legal else self.function(seen)
            best[index] = action_id(chosen, self.actions)
            if mask is not None and not mask[best[index]]:
                raise ValueError(
                    f"the policy chose action {chosen!r} where {np.flatnonzero(mask).tolist()} are "
                    "legal; a function with a second parameter, legal, is told which are"
                )
        return Decision(best)


class _Script(Protocol):
    """Plays one episode by what the environment's `ram` holds."""

    def act(self, ram: np.ndarray) -> int:
        """The action for the memory as it is now."""


class ScriptActor(HostActor):
    def __init__(self, make: Callable[[], _Script]) -> None:
        self.make = make
        self.scripts: dict[int, _Script] = {}

    def begin(self, index: int) -> None:
        self.scripts[index] = self.make()

    def decide(self, obs: np.ndarray, legal: Any, last: Mapping[int, Outcome]) -> Decision:
        best = np.zeros(WIDTH, np.int64)
        for index, outcome in last.items():
            if outcome.ram is None:
                raise ValueError("a script reads an environment's ram, and this one has none")
            best[index] = self.scripts[index].act(outcome.ram)
        return Decision(best)


def host_actor(policy: Policy | HostActor | Callable[..., Any], env: VectorEnv) -> HostActor:
    """What plays a policy, a function or an actor in this environment."""
    if isinstance(policy, Policy):
        stack = check_fit(env, Interface.of_policy(policy))
        return PolicyActor(policy, stack, category_codes(env, policy.features))
    return FunctionActor(policy, env.actions) if callable(policy) else policy
