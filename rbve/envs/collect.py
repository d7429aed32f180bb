"""Object collection seen from within: 'collect:many', 'few', 'rare' and 'crowded'.

Stands in for DeepMind Lab's explore_object_rewards_many and _few. A room of 9 × 9 cells holds
equally many objects of two kinds, one that pays and one that costs. Most of the room is out of
sight, so where things were, and where the agent has looked in vain, has to be remembered.

    actions    forward; turn left or right by 90°. Walls stop the agent
    objects    entering an object's cell pays (+1) or costs (−1), and takes it. Once all that pay
               are gone, everything is placed anew, anywhere but in the agent's own cell
    view       the 5 × 5 cells ahead, the agent in the middle of the last row, facing up.
               Bytes (5, 5, 3), 255 where there is a wall (or what lies behind it), an object
               that pays, one that costs. Walls hide nothing, for the room is empty
    end        after 120 steps (many) or 90 (few), as many as the Lab's levels have seconds:
               a truncation

many: 8 objects of each kind. few: 3. Harder, and of no level of the Lab: rare, 1, which has to be
searched for again and again in 180 steps; crowded, 24, between which there is hardly a way in 120.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rbve.envs.base import Env, Step

SIDE = 9  # cells of the room, without its walls
_VIEW = 5
_ACTIONS = ("forward", "left", "right")
_FORWARD, _LEFT, RIGHT = range(3)
HEADINGS = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)], np.int32)  # up, right, down, left
FLOOR, PAYS, COSTS, _WALL = range(4)


class _Level(NamedTuple):
    each: int  # objects of either kind
    max_steps: int


_LEVELS = {
    "many": _Level(8, 120),
    "few": _Level(3, 90),
    "rare": _Level(1, 180),
    "crowded": _Level(24, 120),
}


class State(NamedTuple):
    cells: Array  # (SIDE, SIDE) uint8: FLOOR, PAYS or COSTS
    position: Array  # (2,) int32: row, column
    heading: Array  # int32, of HEADINGS
    clock: Array  # int32: steps taken


# (4, VIEW, VIEW, 2): from the agent to the cells of its view, by heading.
_AHEAD = np.arange(_VIEW - 1, -1, -1, dtype=np.int32)[:, None, None]
_ASIDE = np.arange(_VIEW, dtype=np.int32)[:, None] - _VIEW // 2
_RIGHT = np.roll(HEADINGS, -1, axis=0)  # what lies to the right of each heading
_OFFSETS = _AHEAD * HEADINGS[:, None, None] + _ASIDE * _RIGHT[:, None, None]


def look(cells: Array, place: Array) -> Array:
    """What is at (..., 2) places, inside the room or not."""
    inside = jnp.all((place >= 0) & (place < SIDE), axis=-1)
    row, column = jnp.moveaxis(jnp.clip(place, 0, SIDE - 1), -1, 0)
    return jnp.where(inside, cells[row, column], _WALL)


def _observe(state: State) -> Array:
    view = look(state.cells, state.position + jnp.asarray(_OFFSETS)[state.heading])
    planes = view[..., None] == jnp.array([_WALL, PAYS, COSTS])
    return jnp.where(planes, 255, 0).astype(jnp.uint8)


def place(each: int, key: Array, position: Array) -> Array:
    """A room with `each` objects of either kind in distinct cells, none where the agent stands."""
    count = SIDE * SIDE
    index = jnp.arange(count, dtype=jnp.uint32)
    # Every cell draws a number. The last bits make them distinct; the agent's cell is last of all.
    drawn = jax.random.bits(key, (count,)) >> 1 & ~jnp.uint32(127) | index
    drawn = jnp.where(index == position[0] * SIDE + position[1], jnp.uint32(2**32 - 1), drawn)
    ascending = jnp.sort(drawn)
    pays, objects = drawn < ascending[each], drawn < ascending[2 * each]
    cells = jnp.where(pays, PAYS, jnp.where(objects, COSTS, FLOOR))
    return cells.astype(jnp.uint8).reshape(SIDE, SIDE)


def reset(level: _Level, key: Array) -> tuple[State, Array]:
    key_place, key_position, key_heading = jax.random.split(key, 3)
    position = jax.random.randint(key_position, (2,), 0, SIDE, jnp.int32)
    state = State(
        cells=place(level.each, key_place, position),
        position=position,
        heading=jax.random.randint(key_heading, (), 0, 4, jnp.int32),
        clock=jnp.int32(0),
    )
    return state, _observe(state)


def step(level: _Level, state: State, action: Array, key: Array) -> tuple[State, Step]:
    action = jnp.asarray(action, jnp.int32)
    turn = (action == RIGHT).astype(jnp.int32) - (action == _LEFT).astype(jnp.int32)
    heading = (state.heading + turn) % 4
    target = state.position + jnp.where(action == _FORWARD, jnp.asarray(HEADINGS)[heading], 0)
    cell = look(state.cells, target)
    position = jnp.where(cell == _WALL, state.position, target)
    reward = (cell == PAYS).astype(float) - (cell == COSTS)

    here = jnp.arange(SIDE)
    here = (here[:, None] == position[0]) & (here[None, :] == position[1])
    cells = jnp.where(here, FLOOR, state.cells).astype(jnp.uint8)
    none_left = ~jnp.any(cells == PAYS)
    cells = jnp.where(none_left, place(level.each, key, position), cells)

    state = State(cells, position, heading, state.clock + 1)
    truncated = state.clock >= level.max_steps
    return state, Step(_observe(state), reward, jnp.zeros((), bool), truncated, action)


@functools.cache  # the same level gives the identical functions, so that compiled code is shared
def make(level: str = "many") -> Env:
    if level not in _LEVELS:
        names = ", ".join(f"'collect:{name}'" for name in _LEVELS)
        raise ValueError(f"collect has no level '{level}'; write one of {names}")
    functions = functools.partial(reset, _LEVELS[level]), functools.partial(step, _LEVELS[level])
    shape, steps = (_VIEW, _VIEW, 3), _LEVELS[level].max_steps
    return Env(f"collect:{level}", shape, _ACTIONS, steps, *functions)
