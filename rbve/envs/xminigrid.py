"""MiniGrid's levels in JAX through xminigrid: 'xminigrid:MiniGrid-MemoryS8' and the like.

    actions    forward, right, left; where there is a key, pick_up and toggle (opens and closes
               doors) too; put_down where something has to be put away. Those of MiniGrid that do
               nothing useful in a level are left out
    view       the cells ahead, the agent in the middle of the last row, facing up: 7 × 7, in
               Memory 3 × 3. Walls hide nothing. What the agent carries is not shown
    reward     1 − 0.9 · step / limit when the goal is reached, else 0
    ends       the goal (in Memory the wrong object too) terminates; the level's limit truncates

Observation: bytes with one plane for each kind of tile that the level has, 255 where it is, and one
for each colour where colours tell things apart; floor is 0 in all. It holds all that xminigrid's
own (tile, colour) view holds.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rbve.envs._host import check_option, load_packages
from rbve.envs.base import Env, Step

EXAMPLE = "MiniGrid-MemoryS8"
_INSTALL = 'pip install "rbve[xminigrid]"'
ACTIONS = ("forward", "right", "left", "pick_up", "put_down", "toggle")  # xminigrid's ids
_WALK = ACTIONS[:3]
_UNLOCK = (*_WALK, "pick_up", "toggle")

# xminigrid's ids
_OUTSIDE, _WALL, BALL, _SQUARE, _PYRAMID, GOAL, KEY = 0, 2, 3, 4, 5, 6, 7
LOCKED, _CLOSED, OPEN, _HEX, _STAR = 8, 9, 10, 11, 12
_COLOURS = (1, 2, 3, 4, 5, 6)  # red, green, blue, purple, yellow, grey
_DOORS = (LOCKED, _CLOSED, OPEN)
_THINGS = (BALL, _SQUARE, _PYRAMID, _HEX, _STAR)


class _Family(NamedTuple):
    """Levels that differ in size alone."""

    tiles: tuple[int, ...]
    colours: tuple[int, ...] = ()
    actions: tuple[str, ...] = _WALK  # those of use


# By what follows "MiniGrid-" in a level's name, up to its size. Playground, which has no goal, and
# XLand, whose rules are chosen apart, are left out.
_FAMILIES = {
    "BlockedUnlockPickUp": _Family((_OUTSIDE, _WALL, KEY, *_DOORS, *_THINGS), _COLOURS, ACTIONS),
    "DoorKey": _Family((_OUTSIDE, _WALL, GOAL, KEY, *_DOORS), actions=_UNLOCK),
    "Empty": _Family((_OUTSIDE, _WALL, GOAL)),
    "EmptyRandom": _Family((_OUTSIDE, _WALL, GOAL)),
    "FourRooms": _Family((_OUTSIDE, _WALL, GOAL)),
    "LockedRoom": _Family((_OUTSIDE, _WALL, GOAL, KEY, *_DOORS), _COLOURS, _UNLOCK),
    "Memory": _Family((_OUTSIDE, _WALL, BALL, KEY)),
    "Unlock": _Family((_OUTSIDE, _WALL, KEY, *_DOORS), _COLOURS, _UNLOCK),
    "UnlockPickUp": _Family((_OUTSIDE, _WALL, KEY, *_DOORS, *_THINGS), _COLOURS, ACTIONS),
}


class _Level(NamedTuple):
    env: Any  # xminigrid's
    params: Any
    family: _Family


def family_of(level: str) -> _Family | None:
    name = level.removeprefix("MiniGrid-").partition("-")[0]
    return _FAMILIES.get("Memory" if name.startswith("MemoryS") else name)


def _observe(family: _Family, view: Array) -> Array:
    tiles = view[..., :1] == jnp.array(family.tiles, view.dtype)
    colours = view[..., 1:] == jnp.array(family.colours, view.dtype)
    return jnp.where(jnp.concatenate([tiles, colours], axis=-1), 255, 0).astype(jnp.uint8)


def reset(level: _Level, key: Array) -> tuple[Any, Array]:
    timestep = level.env.reset(level.params, key)
    return timestep, _observe(level.family, timestep.observation)


def step(level: _Level, timestep: Any, action: Array, _: Array) -> tuple[Any, Step]:
    action = jnp.asarray(action, jnp.int32)
    theirs = jnp.array([ACTIONS.index(name) for name in level.family.actions], jnp.int32)
    after = level.env.step(level.params, timestep, theirs[action])
    terminated = after.last() & (after.discount == 0)
    return after, Step(
        obs=_observe(level.family, after.observation),
        reward=after.reward,
        terminated=terminated,
        truncated=after.last() & ~terminated,
        executed=action,
    )


@functools.cache  # the same level gives the identical functions, so that compiled code is shared
def make(level: str) -> Env:
    (xminigrid,) = load_packages(f"xminigrid:{level} needs xminigrid; {_INSTALL}", "xminigrid")
    families = {each: family_of(each) for each in xminigrid.registered_environments()}
    known = {each: family for each, family in families.items() if family is not None}
    check_option(f"xminigrid has no level '{level}' here", "xminigrid", level, known)
    env, params = xminigrid.make(level)
    chosen = _Level(env, params, known[level])
    functions = functools.partial(reset, chosen), functools.partial(step, chosen)
    shape = jax.eval_shape(functions[0], jax.random.key(0))[1].shape
    steps = chosen.params.max_steps
    return Env(f"xminigrid:{level}", shape, chosen.family.actions, steps, *functions)
