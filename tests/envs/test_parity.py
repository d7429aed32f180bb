"""The JAX environments against bsuite, from the same states.

bsuite draws with NumPy, so its private state is set to ours before each comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bsuite.environments import cartpole as their_cartpole
from bsuite.environments import catch as their_catch
from bsuite.environments import memory_chain as their_memory
from bsuite.environments import mountain_car as their_mountain_car

from rbve import envs
from rbve.envs import cartpole, catch, memory_len, mountain_car
from rbve.envs.base import Env

STEPS = 10_000
CLOCK = np.concatenate([[0.0], np.cumsum(np.full(1001, 0.01))])  # as bsuite's cartpole adds it up


class Mirror(NamedTuple):
    build: Callable[[], Any]  # the bsuite environment
    sample: Callable[[np.random.Generator], Any]  # STEPS states of ours, ends within reach
    inject: Callable[[Any, Any], None]  # sets the bsuite environment to a state of ours
    expose: Callable[[Any], tuple[float, ...]]  # its state as the fields of ours
    observe: Callable[[Any], np.ndarray]


def uniform(rng: np.random.Generator, low: float, high: float) -> np.ndarray:
    return rng.uniform(low, high, STEPS).astype(np.float32)


def clock(rng: np.random.Generator, last: int) -> np.ndarray:
    """Clocks before a step; a tenth of them the last one."""
    return np.where(rng.random(STEPS) < 0.1, last, rng.integers(0, last, STEPS)).astype(np.int32)


def sample_catch(rng: np.random.Generator) -> catch.State:
    draw = (rng.integers(0, high, STEPS, dtype=np.int32) for high in (5, 9, 5))
    return catch.State(*draw)


def inject_catch(env: Any, state: catch.State) -> None:
    env._ball_x, env._ball_y, env._paddle_x = map(int, state)


def sample_cartpole(rng: np.random.Generator) -> cartpole.State:
    return cartpole.State(
        x=uniform(rng, -3.1, 3.1),
        x_dot=uniform(rng, -3, 3),
        theta=uniform(rng, -0.7, 0.7),
        theta_dot=uniform(rng, -3, 3),
        clock=clock(rng, 1000),
    )


def inject_cartpole(env: Any, state: cartpole.State) -> None:
    moving = (float(value) for value in state[:4])
    env._state = their_cartpole.CartpoleState(*moving, CLOCK[state.clock])


def expose_cartpole(env: Any) -> tuple[float, ...]:
    x, x_dot, theta, theta_dot, seconds = env._state
    unwrapped = (theta + np.pi) % (2 * np.pi) - np.pi
    return x, x_dot, unwrapped, theta_dot, round(seconds / 0.01)


def sample_mountain_car(rng: np.random.Generator) -> mountain_car.State:
    return mountain_car.State(
        position=uniform(rng, -1.2, 0.6), velocity=uniform(rng, -0.07, 0.07), clock=clock(rng, 999)
    )


def inject_mountain_car(env: Any, state: mountain_car.State) -> None:
    env._position, env._velocity = float(state.position), float(state.velocity)
    env._timestep = int(state.clock)


def inject_memory(env: Any, state: memory_len.State) -> None:
    env._context, env._query = np.array([int(state.context)]), 0
    env._timestep = int(state.clock)


def memory_mirror(length: int) -> Mirror:
    return Mirror(
        build=lambda: their_memory.MemoryChain(length, num_bits=1),
        sample=lambda rng: memory_len.State(
            rng.integers(0, 2, STEPS, dtype=np.int32), clock(rng, length)
        ),
        inject=inject_memory,
        expose=lambda env: (env._context[0], env._timestep),
        observe=lambda env: env._get_observation(),
    )


MIRRORS = {
    "catch": Mirror(
        build=their_catch.Catch,
        sample=sample_catch,
        inject=inject_catch,
        expose=lambda env: (env._ball_x, env._ball_y, env._paddle_x),
        observe=lambda env: env._observation(),
    ),
    "cartpole": Mirror(
        build=their_cartpole.Cartpole,
        sample=sample_cartpole,
        inject=inject_cartpole,
        expose=expose_cartpole,
        observe=lambda env: env.observation,
    ),
    "mountain_car": Mirror(
        build=their_mountain_car.MountainCar,
        sample=sample_mountain_car,
        inject=inject_mountain_car,
        expose=lambda env: (env._position, env._velocity, env._timestep),
        observe=lambda env: env._get_observation(),
    ),
    "memory_len:1": memory_mirror(1),
    "memory_len:10": memory_mirror(10),
    "memory_len:25": memory_mirror(25),
}


def rows(tree: Any) -> list[Any]:
    """One tree per index of the leading axis."""
    leaves, structure = jax.tree.flatten(tree)
    columns = [np.asarray(leaf) for leaf in leaves]
    return [jax.tree.unflatten(structure, row) for row in zip(*columns, strict=True)]


def replay(mirror: Mirror, states: Any, actions: np.ndarray) -> tuple[np.ndarray, ...]:
    """Steps bsuite once from each state: obs, reward, discount, last, state after."""
    env = mirror.build()
    env.reset()
    results = []
    for state, action in zip(rows(states), actions, strict=True):
        env._reset_next_step = False
        mirror.inject(env, state)
        timestep = env.step(int(action))
        results.append(
            (
                timestep.observation,
                timestep.reward,
                timestep.discount,
                timestep.last(),
                mirror.expose(env),
            )
        )
    return tuple(np.array(column) for column in zip(*results, strict=True))


@pytest.mark.parametrize("name", MIRRORS)
def test_a_step_from_any_state_equals_bsuites(name: str) -> None:
    env, mirror = envs.load(name), MIRRORS[name]
    rng = np.random.default_rng(0)
    states = mirror.sample(rng)
    actions = rng.integers(0, len(env.actions), STEPS, dtype=np.int32)
    after, ours = jax.jit(jax.vmap(env.step, (0, 0, None)))(states, actions, jax.random.key(0))
    obs, reward, discount, last, their_after = replay(mirror, states, actions)

    assert ours.obs.dtype == np.float32
    np.testing.assert_allclose(ours.obs, obs, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(ours.reward, reward)
    np.testing.assert_array_equal(1.0 - ours.terminated, discount)
    np.testing.assert_array_equal(ours.terminated, last)
    np.testing.assert_allclose(np.stack(after, axis=1), their_after, rtol=0, atol=1e-5)
    assert not ours.truncated.any()
    np.testing.assert_array_equal(ours.executed, actions)
    assert STEPS // 50 < last.sum() < STEPS  # the comparison met both ends and others


Policy = Callable[[jax.Array, jax.Array], jax.Array]  # obs, uniform draw in [0, 1) -> action


def thirds(obs: jax.Array, draw: jax.Array) -> jax.Array:
    return (3 * draw).astype(int)


def halves(obs: jax.Array, draw: jax.Array) -> jax.Array:
    return (2 * draw).astype(int)


def climb(obs: jax.Array, draw: jax.Array) -> jax.Array:
    """Pushes the way the car goes, now and then at random."""
    return jnp.where(draw < 0.3, (10 * draw).astype(int), jnp.where(obs[0, 1] < 0, 0, 2))


def balance(obs: Any, draw: Any = None) -> Any:
    """Pushes the cart under the pole, and slowly back to the middle."""
    x, x_dot, sin, _, theta_dot, _ = obs[0]
    return jnp.where(1.8 * x + 3 * x_dot + 10 * sin + 3 * theta_dot > 0, 2, 0)


def roll(env: Env, policy: Policy, key: jax.Array, draws: jax.Array) -> tuple[Any, ...]:
    """A run as long as its draws: first obs, then state, action, state after, Step of each."""

    def advance(carry: Any, draw: jax.Array) -> tuple[Any, Any]:
        state, obs = carry
        action = policy(obs, draw)
        after, step = env.step(state, action, key)
        return (after, step.obs), (state, action, after, step)

    state, obs = env.reset(key)
    _, run = jax.lax.scan(advance, (state, obs), draws)
    return obs, *run


def roll_all(env: Env, policy: Policy, episodes: int) -> list[Any]:
    keys = jax.random.split(jax.random.key(1), episodes)
    draws = np.random.default_rng(2).random((episodes, env.max_steps))
    run = jax.jit(jax.vmap(lambda key, draws: roll(env, policy, key, draws)))
    return rows(run(keys, draws))


CASES: dict[str, tuple[str, Policy, int, Callable[[np.ndarray], bool]]] = {
    "catch": ("catch", thirds, 40, lambda lengths: bool((lengths == 9).all())),
    "cartpole falls": ("cartpole", thirds, 30, lambda lengths: bool((lengths < 400).all())),
    "mountain_car times out": (
        "mountain_car",
        thirds,
        10,
        lambda lengths: bool((lengths == 1000).all()),
    ),
    "mountain_car climbs": ("mountain_car", climb, 30, lambda lengths: bool((lengths < 400).all())),
    "memory_len:1": ("memory_len:1", halves, 20, lambda lengths: bool((lengths == 2).all())),
    "memory_len:10": ("memory_len:10", halves, 20, lambda lengths: bool((lengths == 11).all())),
}


@pytest.mark.parametrize("case", CASES)
def test_whole_episodes_equal_bsuites_in_64_bits(case: str) -> None:
    name, policy, episodes, expected = CASES[case]
    mirror = MIRRORS[name]
    with jax.enable_x64(True):
        runs = roll_all(envs.load(name), policy, episodes)
    theirs = mirror.build()
    lengths = []
    for obs, states, actions, afters, steps in runs:
        length = int(steps.terminated.argmax()) + 1
        lengths.append(length)
        theirs.reset()
        mirror.inject(theirs, rows(states)[0])
        assert obs.dtype == np.float64
        np.testing.assert_allclose(obs, mirror.observe(theirs), rtol=1e-7, atol=1e-7)

        results = []
        for action in actions[:length]:
            timestep = theirs.step(int(action))
            results.append((*timestep, mirror.expose(theirs)))
        kinds, rewards, discounts, observations, their_afters = zip(*results, strict=True)

        np.testing.assert_array_equal(steps.reward[:length], rewards)
        np.testing.assert_array_equal(1.0 - steps.terminated[:length], discounts)
        assert [kind.last() for kind in kinds] == list(steps.terminated[:length])
        assert not steps.truncated[:length].any()
        # bsuite rounds observations to 32 bits; the states beneath them agree to 64-bit rounding.
        np.testing.assert_allclose(steps.obs[:length], observations, rtol=1e-7, atol=1e-7)
        after = np.stack([field[:length] for field in afters], axis=1)
        np.testing.assert_allclose(after, their_afters, rtol=0, atol=1e-9)
    assert expected(np.array(lengths))


def test_a_balanced_pole_lasts_1001_steps_as_in_bsuite() -> None:
    env, mirror = envs.load("cartpole"), MIRRORS["cartpole"]
    with jax.enable_x64(True):
        ((_, states, actions, afters, steps),) = roll_all(env, balance, 1)
    assert int(steps.terminated.argmax()) + 1 == 1001
    assert (steps.reward == 1).all()

    # The same controller balances bsuite's pole for as long, with the same rewards.
    theirs = mirror.build()
    theirs.reset()
    mirror.inject(theirs, rows(states)[0])
    timestep, balancer = theirs.step(int(actions[0])), jax.jit(balance)
    rewards, discounts = [timestep.reward], [timestep.discount]
    while not timestep.last():
        timestep = theirs.step(int(balancer(timestep.observation)))
        rewards.append(timestep.reward)
        discounts.append(timestep.discount)
    np.testing.assert_array_equal(steps.reward, rewards)
    np.testing.assert_array_equal(1.0 - steps.terminated, discounts)

    # Along the whole episode each of our steps is bsuite's step from the same state.
    obs, reward, discount, last, their_after = replay(mirror, states, actions)
    np.testing.assert_allclose(np.stack(afters, axis=1), their_after, rtol=0, atol=1e-12)
    np.testing.assert_allclose(steps.obs, obs, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(steps.reward, reward)
    np.testing.assert_array_equal(1.0 - steps.terminated, discount)
    np.testing.assert_array_equal(steps.terminated, last)

    # Left alone under the same actions, the two drift apart by the pole's own instability:
    # a rounding error of 1e-16 grows by 1.04 a step, so 1e-9 can hold for some 400 steps.
    theirs.reset()
    mirror.inject(theirs, rows(states)[0])
    for step in range(300):
        theirs.step(int(actions[step]))
        ours = [field[step] for field in afters]
        np.testing.assert_allclose(ours, mirror.expose(theirs), rtol=0, atol=1e-9)


def test_a_32_bit_clock_ends_at_step_1001_too() -> None:
    ((_, _, _, _, steps),) = roll_all(envs.load("cartpole"), balance, 1)
    assert steps.obs.dtype == np.float32
    assert int(steps.terminated.argmax()) + 1 == 1001
    assert steps.reward.sum() == 1001
