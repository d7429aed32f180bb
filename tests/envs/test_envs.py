"""What every JAX environment promises, action noise, and loading by name."""

from __future__ import annotations

import functools
import importlib.metadata
import subprocess
import sys
from pathlib import Path
from typing import Any

import bsuite
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import envs
from rbve.envs.base import Env, State, with_action_noise

# tests/envs/test_icu_sepsis.py says how to install what may be missing.
HAS_ICU = any(importlib.metadata.distributions(name="icu-sepsis"))
HERE = [name for name in envs.names() if HAS_ICU or name != "icu_sepsis"]
NATIVE = [*HERE, "memory_len:1", "collect:few"]
BYTES = {"collect", "collect:few"}  # the others observe floats
EPISODES = 500


def random_episode(env: Env, key: jax.Array, actions: jax.Array) -> tuple[jax.Array, ...]:
    """Return, length, terminated, truncated of one episode under the given actions."""

    def advance(carry: Any, action: jax.Array) -> tuple[Any, None]:
        key, state, alive, total, length, terminated, truncated = carry
        key, step_key = jax.random.split(key)
        state, step = env.step(state, action, step_key)
        return (
            key,
            state,
            alive & ~(step.terminated | step.truncated),
            total + alive * step.reward,
            length + alive,
            terminated | (alive & step.terminated),
            truncated | (alive & step.truncated),
        ), None

    reset_key, steps_key = jax.random.split(key)
    start = (steps_key, env.reset(reset_key)[0], True, 0.0, 0, False, False)
    (_, _, _, *outcome), _ = jax.lax.scan(advance, start, actions)
    return tuple(outcome)


@functools.cache
def random_episodes(name: str) -> list[np.ndarray]:
    """Outcomes of episodes under uniformly random actions, as columns."""
    env = envs.load(name)
    shape = (EPISODES, env.max_steps)
    actions = np.random.default_rng(0).integers(0, len(env.actions), shape, dtype=np.int32)
    run = jax.jit(jax.vmap(lambda key, actions: random_episode(env, key, actions)))
    keys = jax.random.split(jax.random.key(0), EPISODES)
    return [np.asarray(column) for column in run(keys, actions)]


def batch_of_starts(env: Env, count: int) -> tuple[State, np.ndarray, jax.Array]:
    """States at the start of episodes, with actions and keys to step them."""
    keys = jax.random.split(jax.random.key(3), 2 * count)
    states, _ = jax.jit(jax.vmap(env.reset))(keys[:count])
    actions = np.random.default_rng(1).integers(0, len(env.actions), count, dtype=np.int32)
    return states, actions, keys[count:]


def same(left: Any, right: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=0, atol=1e-6), left, right)


@pytest.mark.parametrize("wide", [False, True], ids=["32-bit", "64-bit"])
@pytest.mark.parametrize("name", NATIVE)
def test_shapes_and_types_are_as_declared(name: str, wide: bool) -> None:
    with jax.enable_x64(wide):
        env = envs.load(name)
        floating = jnp.dtype("float64" if wide else "float32")
        state, obs = env.reset(jax.random.key(0))
        after, step = env.step(state, jnp.int32(0), jax.random.key(1))
        untyped, _ = env.step(state, 0, jax.random.key(1))
    for seen in (obs, step.obs):
        assert seen.shape == env.obs_shape
        assert seen.dtype == (jnp.dtype("uint8") if name in BYTES else floating)
    assert step.reward.shape == step.executed.shape == ()
    assert step.reward.dtype == floating
    assert step.terminated.dtype == step.truncated.dtype == jnp.dtype(bool)
    assert step.executed.dtype == jnp.dtype("int32")
    assert [x.dtype for x in jax.tree.leaves(after)] == [x.dtype for x in jax.tree.leaves(state)]
    same(untyped, after)
    assert len(set(env.actions)) == len(env.actions) > 1


@pytest.mark.parametrize("name", NATIVE)
def test_a_batch_equals_one_by_one(name: str) -> None:
    env = envs.load(name)
    states, actions, keys = batch_of_starts(env, 8)
    starts = jax.jit(jax.vmap(env.reset))(keys)
    steps = jax.jit(jax.vmap(env.step))(states, actions, keys)
    reset, step = jax.jit(env.reset), jax.jit(env.step)
    for i in range(8):
        start, result, *inputs = jax.tree.map(
            lambda x, i=i: x[i], (starts, steps, states, actions, keys)
        )
        same(start, reset(inputs[-1]))
        same(result, step(*inputs))


@pytest.mark.parametrize("name", NATIVE)
def test_episodes_end_in_time_and_in_one_way(name: str) -> None:
    env = envs.load(name)
    _, lengths, terminated, truncated = random_episodes(name)
    assert (terminated ^ truncated).all()
    assert (lengths >= 1).all()
    assert (lengths <= env.max_steps).all()


@pytest.mark.parametrize("name", NATIVE)
def test_a_name_loads_the_same_environment_again(name: str) -> None:
    env = envs.load(name)
    assert envs.load(env.name) == env  # the same functions, so compiled code is shared
    assert envs.load(name, noise=0.3) == envs.load(name, noise=0.3) != env


def test_random_returns_are_the_known_ones() -> None:
    returns = {name: random_episodes(name)[0] for name in HERE}
    error = {name: column.std() / EPISODES**0.5 for name, column in returns.items()}
    # A ball in a uniformly random column is caught 1 time in 5, whatever the policy does blindly.
    assert abs(returns["catch"].mean() + 0.6) < 4 * error["catch"]
    assert abs(returns["memory_len"].mean()) < 4 * error["memory_len"]
    assert returns["mountain_car"].min() == -1000
    assert returns["mountain_car"].mean() < -990

    theirs, rng = bsuite.load("cartpole", {"seed": 0}), np.random.default_rng(0)
    their_returns = []
    for _ in range(EPISODES):
        timestep, total = theirs.reset(), 0.0
        while not timestep.last():
            timestep = theirs.step(rng.integers(3))
            total += timestep.reward
        their_returns.append(total)
    their_error = np.std(their_returns) / EPISODES**0.5
    difference = returns["cartpole"].mean() - np.mean(their_returns)
    assert abs(difference) < 4 * np.hypot(error["cartpole"], their_error)
    assert 75 < returns["cartpole"].mean() < 85
    if "icu_sepsis" in returns:  # its exact value: tests/evaluation/test_exact.py
        assert abs(returns["icu_sepsis"].mean() - 0.7801) < 4 * error["icu_sepsis"]


@pytest.mark.parametrize("name", NATIVE)
def test_full_noise_executes_uniformly_whatever_is_chosen(name: str) -> None:
    env, count = envs.load(name), 9000
    states, _, keys = batch_of_starts(env, count)
    noisy = with_action_noise(env, 1.0)
    after, steps = jax.jit(jax.vmap(noisy.step, (0, None, 0)))(states, jnp.int32(0), keys)
    share = np.full(len(env.actions), 1 / len(env.actions))
    if env.legal is not None:
        legal = np.asarray(jax.jit(jax.vmap(env.legal))(states))
        assert legal[np.arange(count), steps.executed].all()
        share = (legal / legal.sum(axis=1, keepdims=True)).mean(axis=0)
    bound = 4 * (share * (1 - share) / count) ** 0.5
    frequencies = np.bincount(steps.executed, minlength=len(env.actions)) / count
    assert (np.abs(frequencies - share) <= bound).all()
    # What is reported is what drove the environment, by the second half of the key.
    own_keys = jax.vmap(jax.random.split)(keys)[:, 1]
    quiet_after, quiet_steps = jax.jit(jax.vmap(env.step))(states, steps.executed, own_keys)
    same(after, quiet_after)
    same(steps, quiet_steps)


def test_noise_strikes_as_often_as_asked() -> None:
    count, epsilon = 20_000, 0.25
    env = envs.load("catch", noise=epsilon)
    states, actions, keys = batch_of_starts(env, count)
    _, steps = jax.jit(jax.vmap(env.step))(states, actions, keys)
    share = epsilon * 2 / 3  # a third of the random actions is the chosen one
    bound = 4 * (share * (1 - share) / count) ** 0.5
    assert abs(float((steps.executed != actions).mean()) - share) < bound


def test_no_noise_executes_the_chosen_action() -> None:
    env = envs.load("catch")
    assert with_action_noise(env, 0.0) is env
    states, actions, keys = batch_of_starts(env, 100)
    _, steps = jax.jit(jax.vmap(env.step))(states, actions, keys)
    np.testing.assert_array_equal(steps.executed, actions)


@pytest.mark.parametrize("epsilon", [-0.1, 1.5, float("nan")])
@pytest.mark.parametrize("name", ["catch", "bsuite:catch/0"])
def test_noise_outside_0_to_1_is_refused(name: str, epsilon: float) -> None:
    with pytest.raises(ValueError, match="0 <= epsilon <= 1"):
        envs.load(name, noise=epsilon)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cach", "unknown environment 'cach'. Did you mean 'catch'\\?"),
        ("memory_le:5", "Did you mean 'memory_len:5'\\?"),
        ("bsuit", "Did you mean 'bsuite:catch/0'\\?"),
        ("gymnasum:CartPole-v1", "Did you mean 'gymnasium:CartPole-v1'\\?"),
        ("zzz", "unknown environment 'zzz'. Known: cartpole, catch, collect, icu_sepsis, memory"),
        ("base", "unknown environment 'base'"),
        ("", "unknown environment ''"),
        ("catch:3", "catch takes no option"),
        ("memory_len:x", "memory_length has to be a whole number"),
        ("memory_len:", "memory_length has to be a whole number"),
        ("memory_len:0", "the memory length is at least 1"),
        ("bsuite", "lacks what to load, e.g. 'bsuite:catch/0'"),
        ("gymnasium:", "lacks what to load, e.g. 'gymnasium:CartPole-v1'"),
        ("vizdom:basic", "Did you mean 'vizdoom:basic'\\?"),
    ],
)
def test_a_wrong_name_says_what_to_write(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs.load(name)


def test_a_file_in_the_folder_is_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "from rbve.envs import catch\n\n\ndef make():\n    return catch.make()\n"
    (tmp_path / "corridor.py").write_text(source)
    (tmp_path / "_draft.py").write_text(source)
    monkeypatch.setattr(envs, "__path__", [*envs.__path__, str(tmp_path)])
    known = {"cartpole", "catch", "collect", "icu_sepsis", "memory_len", "mountain_car"}
    assert set(envs.names()) == known | {"corridor"}
    try:
        assert envs.load("corridor") == envs.load("catch")
    finally:
        sys.modules.pop("rbve.envs.corridor", None)


def test_names_need_no_jax() -> None:
    code = "import sys, rbve.envs; print(rbve.envs.names(), 'jax' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"{envs.names()} False"
