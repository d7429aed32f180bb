"""What a policy computes in a state, as one function of arrays, of which programs are made."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve import ops
from rbve.networks.recurrent import Memory, Seen
from rbve.policy.trace import trace
from rbve.runtime.decider import Decider
from rbve.runtime.outcome import Rules
from rbve.runtime.program import Program
from rbve.types import Array, Head

_SIZES = (1, 32, 1024, 8192)
_Shapes = dict[str, tuple[Sequence[int], Any]]


def program_of(policy: Any) -> Program:
    """A policy's outputs (`scores`, `q`, `behaviour` where it has a model of it, and the memory
    after the step) as a Program, for any batch size."""
    return trace(core(policy), shapes(policy))


def decider_of(policy: Any) -> Decider:
    """What decides by the policy, whose program is made at the first decision."""
    support, rules = policy.support, Rules()
    if support:
        rules = Rules(threshold=support.threshold, fallback=support.fallback)
    return Decider(
        program=_Traced(policy), actions=policy.actions, obs_shape=policy.obs_shape,
        features=policy.features, masked=policy.masked, values=policy.algorithm.values,
        units=units(policy) if policy.memory else 0, rules=rules, info=policy.info,
    )  # fmt: skip


class _Traced:
    """A policy's program, once there is something to compute; where it computes what no program
    can, the same by JAX."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def __call__(self, batch: int, **inputs: np.ndarray) -> Mapping[str, np.ndarray]:
        return self._program(batch, **inputs)

    @functools.cached_property
    def _program(self) -> Callable[..., Mapping[str, np.ndarray]]:
        try:
            return program_of(self._policy)
        except ValueError:
            return Compiled(self._policy)


class Compiled:
    """A policy's outputs by JAX, for a few sizes of a batch: others are filled up to the next."""

    def __init__(self, policy: Any) -> None:
        self._function = jax.jit(core(policy))

    def __call__(self, batch: int, **inputs: np.ndarray) -> dict[str, np.ndarray]:
        size = next((each for each in _SIZES if each >= batch), batch)
        filled = {
            name: np.concatenate([each, np.repeat(each[-1:], size - batch, axis=0)])
            for name, each in inputs.items()
        }
        return {name: np.asarray(each)[:batch] for name, each in self._function(**filled).items()}


def shapes(policy: Any) -> _Shapes:
    """The inputs by name: shape without the batch, and dtype."""
    actions = len(policy.actions)
    taken: _Shapes = {"obs": (policy.inputs, np.float32), "legal": ((actions,), np.bool_)}
    if policy.memory:
        taken |= {"last_action": ((), np.int32), "last_reward": ((), np.float32)}
        taken |= {name: ((units(policy),), np.float32) for name in ("hidden", "cell")}
    return taken


def units(policy: Any) -> int:
    """Of all memories, that of the model of the behaviour last."""
    own = policy.network.start(1).hidden.shape[0] if policy.memory else 0
    return own + (units(policy.support.behaviour) if policy.support else 0)


def core(policy: Any) -> Callable[..., dict[str, Array]]:
    """The function of these inputs, each (B, ...)."""

    def compute(
        obs: Array,
        legal: Array,
        last_action: Array | None = None,
        last_reward: Array | None = None,
        hidden: Array | None = None,
        cell: Array | None = None,
    ) -> dict[str, Array]:
        state = None
        if policy.memory:
            state = (last_action, last_reward, hidden, cell)
        mine, later = _parts(policy, state)
        head, after = _head(policy, obs, mine)
        scores = policy.algorithm.scores(head, legal, policy.config, policy.options)
        outputs = {"q": head.q, "scores": scores}
        memories = [after]
        if policy.support:
            clone, after = _head(policy.support.behaviour, obs, later)
            logits = ops.mask(clone.q, legal) / policy.support.temperature
            outputs["behaviour"] = jax.nn.softmax(logits, axis=-1)
            memories.append(after)
        if policy.memory:
            joined = [jnp.concatenate([m[i] for m in memories], axis=1) for i in range(2)]
            outputs |= {"hidden": joined[0], "cell": joined[1]}
        return outputs

    return compute


def _parts(policy: Any, state: Any) -> tuple[Any, Any]:
    """The state of the policy and of its model of the behaviour."""
    if state is None:
        return None, None
    own = policy.network.start(1).hidden.shape[0]
    action, reward, *columns = state
    first, second = ([each[:, part] for each in columns] for part in (slice(own), slice(own, None)))
    return (action, reward, *first), (action, reward, *second)


def _head(policy: Any, obs: Array, state: Any) -> tuple[Head, Any]:
    if not policy.memory:
        return policy.shown(policy.network(obs, None)), ()
    action, reward, hidden, cell = state
    steps = Seen(obs[None], action[None], reward[None], jnp.zeros((1, obs.shape[0]), bool))
    head, after = policy.network(steps, Memory(hidden.T, cell.T), None)
    return policy.shown(head), (after.hidden.T, after.cell.T)
