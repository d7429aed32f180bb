"""MiniGrid's levels step by step beside xminigrid, their rewards, ends and words."""

from __future__ import annotations

import functools
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.tiers import first_and_slow

pytest.importorskip("xminigrid", reason='needs pip install "rbve[xminigrid]"')
import xminigrid

from rbve import envs
from rbve.envs import xminigrid as adapter
from rbve.envs.base import Env

# side of the view, tiles and colours (xminigrid's ids) of the planes, limit by MiniGrid's rules
LEVELS: dict[str, tuple[int, list[int], list[int], int]] = {
    "MemoryS8": (3, [0, 2, 3, 7], [], 5 * 8**2),
    "FourRooms": (7, [0, 2, 6], [], 100),
    "DoorKey-5x5": (7, [0, 2, 6, 7, 8, 9, 10], [], 10 * 5 * 5),
    "UnlockPickUp": (7, [0, 2, 7, 8, 9, 10, 3, 4, 5, 11, 12], [1, 2, 3, 4, 5, 6], 8 * 6**2),
}
# xminigrid's ids of the actions each level has
USEFUL = {
    "MemoryS8": [0, 1, 2],
    "FourRooms": [0, 1, 2],
    "DoorKey-5x5": [0, 1, 2, 3, 5],
    "UnlockPickUp": [0, 1, 2, 3, 4, 5],
}
LANES = 32
FLOOR, BLACK = 1, 7
# The only colour each tile has where colours have no planes.
COLOUR_OF = {0: 0, 1: BLACK, 2: 6, 3: 2, 6: 2, 7: 5, 8: 5, 9: 5, 10: 5}


def load(level: str) -> Env:
    env = envs.load(f"xminigrid:MiniGrid-{level}")
    assert isinstance(env, Env)
    return env


@functools.cache
def side_by_side(level: str) -> tuple[np.ndarray, Any, Any]:
    """Actions (T, N), what ours gives and what theirs gives, over whole episodes; nobody resets."""
    env = load(level)
    theirs, params = xminigrid.make(f"MiniGrid-{level}")
    keys = jax.random.split(jax.random.key(0), LANES)
    shape = (env.max_steps, LANES)
    share = np.array([0.4, 0.15, 0.15, 0.1, 0.05, 0.15])[USEFUL[level]]
    actions = np.random.default_rng(1).choice(len(share), shape, p=share / share.sum())
    ids = jnp.asarray(np.array(USEFUL[level])[actions], jnp.int32)

    @jax.jit
    def run(keys: Any, actions: Any, ids: Any) -> Any:
        mine, first = jax.vmap(env.reset)(keys)
        other = jax.vmap(functools.partial(theirs.reset, params))(keys)

        def advance(carry: Any, given: Any) -> Any:
            mine, step = jax.vmap(env.step)(carry[0], given[0], keys)
            other = jax.vmap(functools.partial(theirs.step, params))(carry[1], given[1])
            return (mine, other), (step, other)

        return (first, other), jax.lax.scan(advance, (mine, other), (actions, ids))[1]

    (first, start), (mine, seen) = run(keys, jnp.asarray(actions, jnp.int32), ids)
    check_views(level, np.asarray(first), np.asarray(start.observation))
    return actions, jax.tree.map(np.asarray, mine), seen


def check_views(level: str, planes: np.ndarray, view: np.ndarray) -> None:
    """xminigrid's (tile, colour) can be told from the planes, and the other way round."""
    _, tiles, colours, _ = LEVELS[level]
    assert planes.dtype == np.uint8
    assert set(np.unique(planes)) == {0, 255}
    on = planes == 255
    cut = len(tiles)
    assert (on[..., :cut].sum(-1) <= 1).all()
    tile = np.where(on[..., :cut].any(-1), np.array(tiles)[on[..., :cut].argmax(-1)], FLOOR)
    np.testing.assert_array_equal(tile, view[..., 0])
    if colours:
        colour = np.array(colours)[on[..., cut:].argmax(-1)]
        plain = np.where(tile == FLOOR, BLACK, 0)
        colour = np.where(on[..., cut:].any(-1), colour, plain)
    else:
        only = COLOUR_OF | ({7: 2} if level == "MemoryS8" else {})  # its key is green
        colour = np.vectorize(only.get)(tile)
    np.testing.assert_array_equal(colour, view[..., 1])


@pytest.mark.parametrize("level", first_and_slow(LEVELS))
def test_step_by_step_as_xminigrid(level: str) -> None:
    actions, mine, theirs = side_by_side(level)
    side, tiles, colours, limit = LEVELS[level]
    assert mine.obs.shape == (limit, LANES, side, side, len(tiles) + len(colours))
    check_views(level, mine.obs, np.asarray(theirs.observation))
    np.testing.assert_array_equal(mine.reward, theirs.reward)
    np.testing.assert_array_equal(mine.terminated | mine.truncated, np.asarray(theirs.last()))
    np.testing.assert_array_equal(mine.terminated, np.asarray(theirs.discount) == 0)
    np.testing.assert_array_equal(mine.executed, actions)


@pytest.mark.parametrize("level", first_and_slow(LEVELS))
def test_rewards_and_ends(level: str) -> None:
    _, mine, _ = side_by_side(level)
    limit = LEVELS[level][3]
    first = np.argmax(mine.terminated | mine.truncated, axis=0)
    lanes = np.arange(LANES)
    terminated, truncated = mine.terminated[first, lanes], mine.truncated[first, lanes]
    assert (terminated ^ truncated).all()
    assert (first[truncated] == limit - 1).all()
    assert load(level).max_steps == limit
    reward = mine.reward[first, lanes]
    won = reward > 0
    assert not reward[truncated].any()
    assert terminated[won].all()
    np.testing.assert_allclose(reward[won], 1 - 0.9 * (first[won] + 1) / limit, rtol=1e-6)
    before = np.arange(limit)[:, None] < first
    assert not mine.reward[before].any()
    if level == "MemoryS8":  # the wrong object ends the episode too, and pays nothing
        assert won.any()
        assert (terminated & ~won).any()
    else:
        assert truncated.any() or won.all()
        np.testing.assert_array_equal(won, terminated)


def test_an_end_at_the_limit_is_a_termination() -> None:
    env = load("FourRooms")
    theirs, params = xminigrid.make("MiniGrid-FourRooms")
    timestep = jax.jit(theirs.reset)(params, jax.random.key(0))
    grid = np.array(timestep.state.grid)
    goal = np.argwhere(grid[..., 0] == 6)[0]
    grid[goal[0], goal[1] - 1] = (FLOOR, BLACK)
    agent = timestep.state.agent.replace(
        position=jnp.asarray(goal) - jnp.array([0, 1]), direction=jnp.int32(1)
    )
    state = timestep.state.replace(grid=jnp.asarray(grid), agent=agent, step_num=jnp.int32(99))
    for action, ends, reward in [(0, (True, False), 0.1), (1, (False, True), 0.0)]:
        given = timestep.replace(state=state)
        _, step = jax.jit(env.step)(given, jnp.int32(action), jax.random.key(0))
        assert (bool(step.terminated), bool(step.truncated)) == ends
        assert float(step.reward) == pytest.approx(reward)


def test_names_and_sharing() -> None:
    env = load("MemoryS8")
    assert env.name == "xminigrid:MiniGrid-MemoryS8"
    assert env.actions == load("FourRooms").actions == ("forward", "right", "left")
    assert load("DoorKey-5x5").actions == ("forward", "right", "left", "pick_up", "toggle")
    assert load("UnlockPickUp").actions == adapter.ACTIONS
    assert load("MemoryS8") == env  # the same functions, so compiled code is shared
    assert envs.load(env.name, noise=0.3) == envs.load(env.name, noise=0.3) != env
    starts = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), 20))[1]
    assert len(np.unique(np.asarray(starts).reshape(20, -1), axis=0)) > 2


def test_every_level_of_minigrid_has_its_planes() -> None:
    missing = [
        each for each in xminigrid.registered_environments() if adapter.family_of(each) is None
    ]
    assert [each for each in missing if not each.startswith("XLand")] == ["MiniGrid-Playground"]
    assert len([each for each in missing if each.startswith("XLand")]) == len(missing) - 1


def test_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="Did you mean 'xminigrid:MiniGrid-MemoryS8'"):
        envs.load("xminigrid:MemoryS8")
    with pytest.raises(ValueError, match="has no level 'XLand-MiniGrid-R1-9x9' here"):
        envs.load("xminigrid:XLand-MiniGrid-R1-9x9")
    monkeypatch.setitem(sys.modules, "xminigrid", None)
    adapter.make.cache_clear()
    with pytest.raises(ImportError, match=r'pip install "rbve\[xminigrid\]"'):
        envs.load("xminigrid:MiniGrid-FourRooms")
