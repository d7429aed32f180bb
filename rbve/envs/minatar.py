"""MinAtar's games through pgx: five Atari games on 10×10 boards (Young and Tian, arXiv:1903.03176).

As MinAtar defines them (version 1, pgx's defaults):

    actions    the minimal set of each game
    sticky     with probability .1 the game repeats the action it last executed, which
               `Step.executed` tells; at the start that is "noop"
    ramping    asterix, seaquest and space_invaders become faster as they go on

Observation: bytes (10, 10, C), one channel per kind of object, 255 where it is. Networks take bytes
as pixels, 0 to 255 for 0 to 1, so they see MinAtar's zeros and ones, and stores hold bytes.

Ends: the game's own are terminations, freeway's clock of 2501 steps among them, which MinAtar calls
the end of the game. The other games have no clock, and a policy may keep one going for ever (a ball
in a loop that meets no brick): after freeway's 2501 steps they are truncated.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rbve.envs._host import check_option, load_packages
from rbve.envs.base import Env, Step

EXAMPLE = "breakout"
_INSTALL = 'pip install "rbve[minatar]"'
_GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
_ACTIONS = ("noop", "left", "up", "right", "down", "fire")  # MinAtar's ids
MAX_STEPS = 2501


class State(NamedTuple):
    game: Any  # pgx's state
    clock: Array  # int32: steps done


def _observe(game: Any) -> Array:
    return jnp.where(game.observation, 255, 0).astype(jnp.uint8)


def reset(pgx_env: Any, key: Array) -> tuple[State, Array]:
    game = pgx_env.init(key)
    return State(game, jnp.int32(0)), _observe(game)


def step(pgx_env: Any, state: State, action: Array, key: Array) -> tuple[State, Step]:
    game = pgx_env.step(state.game, jnp.asarray(action, jnp.int32), key)
    clock = state.clock + 1
    executed = jnp.argmax(pgx_env.minimal_action_set == game._last_action)
    return State(game, clock), Step(
        obs=_observe(game),
        reward=game.rewards[0],
        terminated=game.terminated,
        truncated=(clock >= MAX_STEPS) & ~game.terminated,
        executed=executed.astype(jnp.int32),
    )


@functools.cache  # the same game gives the identical functions, so that compiled code is shared
def make(game: str) -> Env:
    check_option(f"MinAtar has no game '{game}'", "minatar", game, _GAMES)
    (pgx,) = load_packages(f"minatar:{game} needs pgx; {_INSTALL}", "pgx")
    pgx_env = pgx.make(f"minatar-{game}")
    board = jax.eval_shape(pgx_env.init, jax.random.key(0)).observation
    actions = tuple(_ACTIONS[int(i)] for i in pgx_env.minimal_action_set)
    functions = functools.partial(reset, pgx_env), functools.partial(step, pgx_env)
    return Env(f"minatar:{game}", board.shape, actions, MAX_STEPS, *functions)
