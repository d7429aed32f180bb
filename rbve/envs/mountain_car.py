"""Mountain car: an underpowered car swings back and forth to climb a hill.

    v ← clip(v + 0.001 (a - 1) - 0.0025 cos 3p, ±0.07)
    p ← clip(p + v, -1.2, 0.6)

with actions a in {0, 1, 2}. At the left wall, p = -1.2, a negative v becomes 0. The car
starts at rest with p in U(-.6, -.4). Every step is rewarded -1. The episode terminates once
p >= 0.5, and also after 1000 steps: later value is 0 at the time limit too, as in the
environment this one mirrors.

Observation: p, v, t/1000, of shape (1, 3).
Equal to bsuite 0.3.6 `mountain_car`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rbve.envs.base import Env, Step

_MIN_POSITION, _MAX_POSITION, _GOAL = -1.2, 0.6, 0.5
_MAX_SPEED = 0.07
_FORCE, _GRAVITY = 0.001, 0.0025
_START = (-0.6, -0.4)
MAX_STEPS = 1000


class State(NamedTuple):
    position: Array
    velocity: Array  # per step
    clock: Array  # int32: steps taken


def _observe(state: State) -> Array:
    clock = state.clock.astype(float) / MAX_STEPS
    return jnp.stack([state.position, state.velocity, clock])[None]


def reset(key: Array) -> tuple[State, Array]:
    position = jax.random.uniform(key, minval=_START[0], maxval=_START[1])
    state = State(position, jnp.zeros_like(position), jnp.int32(0))
    return state, _observe(state)


def step(state: State, action: Array, _: Array) -> tuple[State, Step]:
    action = jnp.asarray(action, jnp.int32)
    pull = (action - 1).astype(float) * _FORCE - _GRAVITY * jnp.cos(3 * state.position)
    velocity = jnp.clip(state.velocity + pull, -_MAX_SPEED, _MAX_SPEED)
    position = jnp.clip(state.position + velocity, _MIN_POSITION, _MAX_POSITION)
    velocity = jnp.where(position == _MIN_POSITION, jnp.maximum(velocity, 0.0), velocity)
    state = State(position, velocity, state.clock + 1)

    ended = (position >= _GOAL) | (state.clock >= MAX_STEPS)
    return state, Step.terminating(_observe(state), -jnp.ones_like(position), ended, action)


def make() -> Env:
    return Env("mountain_car", (1, 3), ("left", "stay", "right"), MAX_STEPS, reset, step)
