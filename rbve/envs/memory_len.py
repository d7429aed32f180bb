"""Memory length: a bit is shown at the start and has to be repeated at the end.

With memory length L, the observation at clock t is (1 - t/L, query, context), of shape
(1, 3). The context is +1 or -1 at t = 0, by a fair coin, and 0 later. The query names the
bit to repeat; there is only bit 0, so it is always 0.

A step returns the observation of the clock before it advances, so the first step shows the
start again and an episode has L + 1 steps. Only the last action counts: 1 repeats a context
of +1, 0 one of -1. It is rewarded +1 if right, else -1, and the episode terminates; every
earlier reward is 0.

Equal to bsuite 0.3.6 `memory_len`.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rbve.envs.base import Env, Step


class State(NamedTuple):
    context: Array  # int32: the bit to repeat, 0 or 1
    clock: Array  # int32: steps taken


def _observe(memory_length: int, state: State) -> Array:
    time = 1 - state.clock.astype(float) / memory_length
    context = jnp.where(state.clock == 0, 2 * state.context - 1, 0).astype(float)
    return jnp.stack([time, jnp.zeros_like(time), context])[None]


def reset(memory_length: int, key: Array) -> tuple[State, Array]:
    state = State(jax.random.bernoulli(key).astype(jnp.int32), jnp.int32(0))
    return state, _observe(memory_length, state)


def step(memory_length: int, state: State, action: Array, _: Array) -> tuple[State, Step]:
    action = jnp.asarray(action, jnp.int32)
    last = state.clock >= memory_length
    right = action == state.context
    reward = jnp.where(last, jnp.where(right, 1.0, -1.0), 0.0)
    outcome = Step.terminating(_observe(memory_length, state), reward, last, action)
    return state._replace(clock=state.clock + 1), outcome


@functools.cache  # equal lengths give the identical functions, so that compiled code is shared
def make(memory_length: int = 10) -> Env:
    if memory_length < 1:
        raise ValueError(f"memory_len: the memory length is at least 1, not {memory_length}")
    functions = functools.partial(reset, memory_length), functools.partial(step, memory_length)
    return Env(f"memory_len:{memory_length}", (1, 3), ("0", "1"), memory_length + 1, *functions)
