"""MinAtar step by step beside pgx, its ends, its sticky actions, and its words."""

from __future__ import annotations

import functools
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest
from support.tiers import first_and_slow

from rbve import envs
from rbve.envs import minatar
from rbve.envs.base import Env

# MinAtar's own tables: channels of the board, and the minimal actions by MinAtar's ids.
BOARDS = {"asterix": 4, "breakout": 4, "freeway": 7, "seaquest": 10, "space_invaders": 6}
IDS = {
    "asterix": [0, 1, 2, 3, 4],
    "breakout": [0, 1, 3],
    "freeway": [0, 2, 4],
    "seaquest": [0, 1, 2, 3, 4, 5],
    "space_invaders": [0, 1, 3, 5],
}
LANES, STEPS = 16, 300


def load(game: str) -> Env:
    env = envs.load(f"minatar:{game}")
    assert isinstance(env, Env)
    return env


@functools.cache
def side_by_side(game: str) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Actions (T, N), what ours gives and what pgx gives, from equal keys; nobody resets."""
    env, theirs = load(game), pgx.make(f"minatar-{game}")
    keys = jax.random.split(jax.random.key(0), LANES)
    actions = np.random.default_rng(1).integers(0, len(env.actions), (STEPS, LANES))

    def start(key: Any) -> Any:
        (mine, obs), state = env.reset(key), theirs.init(key)
        return (mine, state), (obs, state.observation)

    def advance(carry: Any, given: Any) -> Any:
        mine, state = carry
        action, key = given
        mine, step = env.step(mine, action, key)
        state = theirs.step(state, action, key)
        seen = (state.observation, state.rewards, state.terminated, state._last_action)
        return (mine, state), (tuple(step), seen)

    @jax.jit
    def run(keys: Any, actions: Any, step_keys: Any) -> Any:
        carry, first = jax.vmap(start)(keys)
        return first, jax.lax.scan(
            lambda carry, given: jax.vmap(advance)(carry, given), carry, (actions, step_keys)
        )[1]

    step_keys = jax.random.split(jax.random.key(2), (STEPS, LANES))
    first, (mine, seen) = run(keys, jnp.asarray(actions, jnp.int32), step_keys)
    np.testing.assert_array_equal(np.asarray(first[0]), 255 * np.asarray(first[1], np.uint8))
    return actions, [np.asarray(x) for x in mine], [np.asarray(x) for x in seen]


@pytest.mark.parametrize("game", first_and_slow(BOARDS))
def test_step_by_step_as_pgx(game: str) -> None:
    _, (obs, reward, terminated, truncated, executed), seen = side_by_side(game)
    assert obs.dtype == np.uint8
    assert obs.shape == (STEPS, LANES, 10, 10, BOARDS[game])
    np.testing.assert_array_equal(obs, 255 * seen[0].astype(np.uint8))
    np.testing.assert_array_equal(reward, seen[1][..., 0])
    np.testing.assert_array_equal(terminated, seen[2])
    np.testing.assert_array_equal(np.array(IDS[game])[executed], seen[3])
    assert not truncated.any()
    if game == "freeway":  # ends by its clock, and takes long to cross at random
        assert not terminated.any()
    else:
        assert reward.max() > 0
        assert terminated.any()
        assert np.diff(terminated.astype(int), axis=0).min() == 0  # no reset by itself: ends last


@pytest.mark.parametrize("game", BOARDS)
def test_actions_and_shape(game: str) -> None:
    env = load(game)
    assert env.obs_shape == (10, 10, BOARDS[game])
    named = ("noop", "left", "up", "right", "down", "fire")
    assert env.actions == tuple(named[i] for i in IDS[game])
    assert load(game) == env  # the same functions, so compiled code is shared
    assert env.name == f"minatar:{game}"
    assert envs.load(env.name, noise=0.3) == envs.load(env.name, noise=0.3) != env


def test_actions_stick_one_time_in_ten() -> None:
    actions, (_, _, terminated, _, executed), _ = side_by_side("space_invaders")
    alive = ~terminated[1:]
    differs = alive & (actions[1:] != executed[:-1])  # only there can sticking be seen
    stuck = differs & (executed[1:] == executed[:-1])
    np.testing.assert_array_equal(executed[1:][differs & ~stuck], actions[1:][differs & ~stuck])
    count = differs.sum()
    assert count > 500
    assert stuck.sum() / count == pytest.approx(0.1, abs=5 * np.sqrt(0.09 / count))


def test_a_reset_draws_from_its_key() -> None:
    keys = jax.random.split(jax.random.key(5), 200)
    boards = np.asarray(jax.jit(jax.vmap(load("breakout").reset))(keys)[1])
    left, right = (boards[:, 3, column, 1] for column in (0, 9))  # channel 1 is the ball
    assert ((left == 255) ^ (right == 255)).all()
    assert 60 < (left == 255).sum() < 140


def test_noise_is_told() -> None:
    env = envs.load("minatar:breakout", noise=1.0)
    assert isinstance(env, Env)
    keys = jax.random.split(jax.random.key(0), 300)
    state, _ = jax.vmap(env.reset)(keys)
    stay = jnp.zeros(300, jnp.int32)
    _, step = jax.jit(jax.vmap(env.step))(state, stay, keys)
    counts = np.bincount(np.asarray(step.executed), minlength=3)
    # The tenth that sticks repeats "noop", on top of its third.
    expected = 300 * np.array([0.4, 0.3, 0.3])
    assert (np.abs(counts - expected) < 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize(("clock", "truncated"), [(2499, False), (2500, True)])
def test_games_without_a_clock_are_truncated(clock: int, truncated: bool) -> None:
    env = load("breakout")
    state, _ = env.reset(jax.random.key(0))
    step = env.step(state._replace(clock=jnp.int32(clock)), jnp.int32(0), jax.random.key(1))[1]
    assert (bool(step.terminated), bool(step.truncated)) == (False, truncated)
    assert env.max_steps == 2501


def test_an_end_of_the_game_is_no_truncation_at_the_limit() -> None:
    env = load("breakout")
    state, _ = env.reset(jax.random.key(0))
    # The ball one row above the bottom, moving away from the paddle.
    game = state.game.replace(
        _ball_y=jnp.int32(8), _ball_x=jnp.int32(0), _last_y=jnp.int32(7), _pos=jnp.int32(9)
    )
    last = minatar.State(game, jnp.int32(2500))
    step = env.step(last, jnp.int32(0), jax.random.key(1))[1]
    assert (bool(step.terminated), bool(step.truncated)) == (True, False)


def test_freeway_ends_by_its_clock() -> None:
    env = load("freeway")

    def advance(state: Any, key: Any) -> Any:
        state, step = env.step(state, jnp.int32(1), key)
        return state, (step.terminated, step.truncated, step.reward)

    state, _ = env.reset(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 2501)
    terminated, truncated, reward = jax.jit(lambda *given: jax.lax.scan(advance, *given))(
        state, keys
    )[1]
    assert np.flatnonzero(terminated).tolist() == [2500]
    assert not np.asarray(truncated).any()
    assert float(reward.sum()) > 0  # always up crosses the road now and then


def test_words_about_unknown_games_and_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="Did you mean 'minatar:breakout'"):
        envs.load("minatar:brekout")
    with pytest.raises(ValueError, match=r"lacks what to load, e\.g\. 'minatar:breakout'"):
        envs.load("minatar")
    monkeypatch.setitem(sys.modules, "pgx", None)
    minatar.make.cache_clear()
    with pytest.raises(ImportError, match=r'pip install "rbve\[minatar\]"'):
        envs.load("minatar:breakout")
