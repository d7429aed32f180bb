"""Catch: a ball falls one row a step, a paddle on the bottom row moves to meet it.

The board has 10 rows and 5 columns. The ball starts on the top row in a uniformly random
column, the paddle in the middle of the bottom row. Each step moves the paddle by -1, 0 or
+1 column, clipped to the board, and the ball down by one row. When the ball reaches the
bottom row, after 9 steps, the episode terminates with reward +1 if the paddle is in its
column, else -1; every earlier reward is 0.

Observation: the board, 1 where the ball or the paddle is, else 0.
Equal to bsuite 0.3.6 `catch`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rbve.envs.base import Env, Step

ROWS = 10
COLUMNS = 5


class State(NamedTuple):
    ball_x: Array  # int32: column
    ball_y: Array  # int32: row, 0 at the top
    paddle_x: Array  # int32: column


def _observe(state: State) -> Array:
    rows = jnp.arange(ROWS)[:, None]
    columns = jnp.arange(COLUMNS)
    ball = (rows == state.ball_y) & (columns == state.ball_x)
    paddle = (rows == ROWS - 1) & (columns == state.paddle_x)
    return (ball | paddle).astype(float)


def reset(key: Array) -> tuple[State, Array]:
    state = State(
        ball_x=(jax.random.uniform(key) * COLUMNS).astype(jnp.int32),  # cheaper than randint
        ball_y=jnp.int32(0),
        paddle_x=jnp.int32(COLUMNS // 2),
    )
    return state, _observe(state)


def step(state: State, action: Array, _: Array) -> tuple[State, Step]:
    action = jnp.asarray(action, jnp.int32)
    state = State(
        ball_x=state.ball_x,
        ball_y=state.ball_y + 1,
        paddle_x=jnp.clip(state.paddle_x + action - 1, 0, COLUMNS - 1),
    )
    landed = state.ball_y == ROWS - 1
    caught = state.paddle_x == state.ball_x
    reward = jnp.where(landed, jnp.where(caught, 1.0, -1.0), 0.0)
    return state, Step.terminating(_observe(state), reward, landed, action)


def make() -> Env:
    return Env("catch", (ROWS, COLUMNS), ("left", "stay", "right"), ROWS - 1, reset, step)
