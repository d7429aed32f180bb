"""Cartpole: push a cart left, not at all, or right, so that its pole stays up.

With force F in {-10, 0, +10}, cart mass 1, pole mass m = 0.1, total M = 1.1, half length
l = 0.5 and g = 9.8:

    u  = (F + m l θ̇² sin θ) / M
    θ̈  = (g sin θ - u cos θ) / (l (4/3 - m cos² θ / M))
    ẍ  = u - m l θ̈ cos θ / M

Euler steps of 0.01 s advance x and θ by the old velocities. All four start in U(-.05, .05).
A step is rewarded 1 while cos θ > 0.8 and |x| < 3, else 0 and the episode terminates. The
time limit terminates too: later value is 0, as in the environment this one mirrors.

Observation: x/3, ẋ/3, sin θ, cos θ, θ̇, t/10 s, of shape (1, 6).
Equal to bsuite 0.3.6 `cartpole`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rbve.envs.base import Env, Step

_CART_MASS, _POLE_MASS = 1.0, 0.1
_TOTAL_MASS = _CART_MASS + _POLE_MASS
_LENGTH = 0.5  # of half the pole
_FORCE, _GRAVITY = 10.0, 9.8
_SECONDS, _MAX_SECONDS = 0.01, 10.0  # of a step, of an episode
_MIN_HEIGHT = 0.8  # cos θ above which the pole counts as up
_MAX_X, _START = 3.0, 0.05
# The mirrored clock adds 0.01 in 64-bit floats and ends strictly after 10 s: its sum after
# 1000 steps is a rounding error below 10, so step 1001 is the last. Counting steps keeps
# that in 32 bits.
MAX_STEPS = 1001


class State(NamedTuple):
    x: Array  # cart position
    x_dot: Array
    theta: Array  # pole angle in radians, 0 upright; never wrapped, as cos θ > 0.8 bounds it
    theta_dot: Array
    clock: Array  # int32: steps taken


def _observe(state: State) -> Array:
    clock = state.clock.astype(float) * (_SECONDS / _MAX_SECONDS)
    pole = (jnp.sin(state.theta), jnp.cos(state.theta), state.theta_dot)
    return jnp.stack([state.x / _MAX_X, state.x_dot / _MAX_X, *pole, clock])[None]


def reset(key: Array) -> tuple[State, Array]:
    x, x_dot, theta, theta_dot = jax.random.uniform(key, (4,), minval=-_START, maxval=_START)
    state = State(x, x_dot, theta, theta_dot, jnp.int32(0))
    return state, _observe(state)


def step(state: State, action: Array, _: Array) -> tuple[State, Step]:
    action = jnp.asarray(action, jnp.int32)
    force = (action - 1).astype(float) * _FORCE
    sin, cos = jnp.sin(state.theta), jnp.cos(state.theta)
    pole = _POLE_MASS * _LENGTH
    push = (force + pole * state.theta_dot**2 * sin) / _TOTAL_MASS
    theta_acc = (_GRAVITY * sin - cos * push) / (
        _LENGTH * (4 / 3 - _POLE_MASS * cos**2 / _TOTAL_MASS)
    )
    x_acc = push - pole * theta_acc * cos / _TOTAL_MASS

    state = State(
        x=state.x + _SECONDS * state.x_dot,
        x_dot=state.x_dot + _SECONDS * x_acc,
        theta=state.theta + _SECONDS * state.theta_dot,
        theta_dot=state.theta_dot + _SECONDS * theta_acc,
        clock=state.clock + 1,
    )
    balanced = (jnp.cos(state.theta) > _MIN_HEIGHT) & (jnp.abs(state.x) < _MAX_X)
    ended = ~balanced | (state.clock >= MAX_STEPS)
    return state, Step.terminating(_observe(state), balanced.astype(float), ended, action)


def make() -> Env:
    return Env("cartpole", (1, 6), ("left", "stay", "right"), MAX_STEPS, reset, step)
