"""Object collection beside a slow simulation in NumPy, and what a policy can reach in it."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import envs
from rbve.envs import collect
from rbve.envs.base import Env

LANES = 12
LEVELS = {
    "many": (8, 120),
    "few": (3, 90),
    "rare": (1, 180),
    "crowded": (24, 120),
}  # objects of a kind, steps


def load(level: str) -> Env:
    env = envs.load(f"collect:{level}")
    assert isinstance(env, Env)
    return env


@functools.cache
def played(level: str) -> tuple[np.ndarray, Any, Any, np.ndarray]:
    """Actions (T, N), states (T + 1, N), steps (T, N), first views; forward three times in five."""
    env = load(level)
    keys = jax.random.split(jax.random.key(0), LANES)
    rng = np.random.default_rng(2)
    actions = rng.choice(3, (env.max_steps, LANES), p=[0.6, 0.2, 0.2]).astype(np.int32)

    @jax.jit
    def run(keys: Any, actions: Any, step_keys: Any) -> Any:
        state, obs = jax.vmap(env.reset)(keys)

        def advance(state: Any, given: Any) -> Any:
            after, step = jax.vmap(env.step)(state, *given)
            return after, (after, step)

        return state, obs, jax.lax.scan(advance, state, (actions, step_keys))[1]

    step_keys = jax.random.split(jax.random.key(1), actions.shape)
    start, obs, (states, steps) = run(keys, actions, step_keys)
    states = jax.tree.map(lambda a, b: np.concatenate([np.asarray(a)[None], b]), start, states)
    return actions, states, jax.tree.map(np.asarray, steps), np.asarray(obs)


def seen(cells: np.ndarray, position: np.ndarray, heading: int) -> np.ndarray:
    """The view by turning a padded room until the agent faces up."""
    room = np.pad(cells, 9, constant_values=9)
    turned = np.rot90(room, heading)  # anticlockwise, so that the right becomes the top
    marker = np.zeros_like(room)
    marker[position[0] + 9, position[1] + 9] = 1
    ((row, column),) = np.argwhere(np.rot90(marker, heading))
    view = turned[row - 4 : row + 1, column - 2 : column + 3]
    return 255 * np.stack([view == 9, view == 1, view == 2], axis=-1).astype(np.uint8)


@pytest.mark.parametrize("level", LEVELS)
def test_step_by_step_as_a_slow_simulation(level: str) -> None:
    actions, states, steps, first = played(level)
    each, length = LEVELS[level]
    moves = {0: (-1, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1)}  # headings, clockwise from up
    rewards = {-1: 0, 0: 0, 1: 0}
    bumps = 0
    for lane in range(LANES):
        cells = states.cells[0, lane].copy()
        row, column = states.position[0, lane]
        heading = int(states.heading[0, lane])
        np.testing.assert_array_equal(first[lane], seen(cells, np.array([row, column]), heading))
        for t in range(length):
            action, reward = actions[t, lane], 0.0
            if action == 1:
                heading = (heading + 3) % 4
            elif action == 2:
                heading = (heading + 1) % 4
            else:
                to = row + moves[heading][0], column + moves[heading][1]
                if min(to) >= 0 and max(to) < 9:
                    row, column = to
                    if cells[to] > 0:
                        reward = 1 if cells[to] == 1 else -1
                        cells[to] = 0
                else:
                    bumps += 1
            now = states.cells[t + 1, lane]
            if not (cells == 1).any():
                assert [(now == kind).sum() for kind in (1, 2)] == [each, each]
                assert now[row, column] == 0
                cells = now.copy()
            np.testing.assert_array_equal(now, cells)
            assert states.position[t + 1, lane].tolist() == [row, column]
            assert states.heading[t + 1, lane] == heading
            assert steps.reward[t, lane] == reward
            rewards[reward] += 1
            view = seen(cells, np.array([row, column]), heading)
            np.testing.assert_array_equal(steps.obs[t, lane], view)
    assert min(rewards.values()) > 5
    assert bumps > 10
    np.testing.assert_array_equal(steps.executed, actions)


@pytest.mark.parametrize("level", LEVELS)
def test_the_clock_truncates_and_nothing_terminates(level: str) -> None:
    _, _, steps, first = played(level)
    length = LEVELS[level][1]
    assert not steps.terminated.any()
    assert not steps.truncated[:-1].any()
    assert steps.truncated[-1].all()
    assert len(steps.truncated) == length == load(level).max_steps
    assert first.dtype == steps.obs.dtype == np.uint8


def test_everything_at_the_start_is_drawn() -> None:
    count = 4000
    keys = jax.random.split(jax.random.key(3), count)
    state, _ = jax.jit(jax.vmap(load("few").reset))(keys)
    cells = np.asarray(state.cells)
    assert ((cells == 1).sum((1, 2)) == 3).all()
    assert ((cells == 2).sum((1, 2)) == 3).all()
    position = np.asarray(state.position)
    assert (cells[np.arange(count), *position.T] == 0).all()

    def even(values: np.ndarray, kinds: int, total: int) -> None:
        frequency = np.bincount(values, minlength=kinds)
        expected = total / kinds
        assert len(frequency) == kinds
        assert np.abs(frequency - expected).max() < 5 * expected**0.5

    even(np.asarray(state.heading), 4, count)
    even(position @ [9, 1], 81, count)
    for kind in (1, 2):  # objects lie anywhere, whichever their kind
        even(np.argwhere(cells == kind)[:, 1:] @ [9, 1], 81, 3 * count)


def test_placing_anew_happens_when_the_last_that_pays_is_taken() -> None:
    """A row of floor, one that costs, one that pays: the agent walks right over both."""
    env = load("few")
    cells = np.zeros((9, 9), np.uint8)
    cells[4, 3:5] = [2, 1]
    state = collect.State(jnp.asarray(cells), jnp.array([4, 2]), jnp.int32(1), jnp.int32(0))
    counts = []
    for expected in (-1, 1):
        state, step = env.step(state, jnp.int32(0), jax.random.key(0))
        assert float(step.reward) == expected
        counts.append([int((state.cells == kind).sum()) for kind in (1, 2)])
    assert counts == [[1, 0], [3, 3]]


def test_a_place_drawn_anew_is_free_and_differs() -> None:
    keys = jax.random.split(jax.random.key(4), 300)
    corner = jnp.array([0, 8])
    rooms = np.asarray(jax.jit(jax.vmap(lambda key: collect.place(40, key, corner)))(keys))
    assert (rooms[:, 0, 8] == 0).all()  # 80 objects fill every other cell
    assert ((rooms == 1).sum((1, 2)) == 40).all()
    assert ((rooms == 2).sum((1, 2)) == 40).all()
    assert len(np.unique(rooms.reshape(300, -1), axis=0)) == 300


def test_blind_walks_earn_nothing_on_average() -> None:
    """Both kinds are touched alike, so only who looks where it goes earns."""
    env, lanes = load("many"), 500

    @jax.jit
    def run(keys: Any, actions: Any, step_keys: Any) -> Any:
        state = jax.vmap(env.reset)(keys)[0]

        def advance(state: Any, given: Any) -> Any:
            state, step = jax.vmap(env.step)(state, *given)
            return state, step.reward

        return jax.lax.scan(advance, state, (actions, step_keys))[1]

    actions = np.random.default_rng(0).integers(0, 3, (120, lanes), dtype=np.int32)
    keys = jax.random.split(jax.random.key(5), (121, lanes))
    rewards = np.asarray(run(keys[0], actions, keys[1:]))
    returns = rewards.sum(0)
    assert abs(returns.mean()) < 4 * returns.std() / lanes**0.5
    assert 1.5 < (rewards > 0).sum(0).mean() < 2.5


@pytest.mark.parametrize("name", ["collect:some", "collect:", "collect:3"])
def test_unknown_levels(name: str) -> None:
    with pytest.raises(ValueError, match="write one of 'collect:many', 'collect:few', 'coll"):
        envs.load(name)


def test_names() -> None:
    many = load("many")
    assert envs.load("collect") == many != load("few")
    assert many.name == "collect:many"
    assert many.obs_shape == (5, 5, 3)
    assert many.actions == ("forward", "left", "right")
