"""Environments of outside packages behind one interface."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import dm_env
import gymnasium
import numpy as np
import pytest
from dm_env import specs

from rbve import envs
from rbve.envs import bsuite as bsuite_adapter
from rbve.envs import gymnasium as gymnasium_adapter
from rbve.envs.base import HostEnv, NoisyHostEnv


class Echo(gymnasium.Env[Any, Any]):
    """Observes the last action; ids, actions and observations start from odd numbers."""

    def __init__(self, observation_space: Any = None) -> None:
        self.action_space = gymnasium.spaces.Discrete(3, start=5)
        self.observation_space = observation_space or gymnasium.spaces.Discrete(4, start=4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._observe(4), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._observe(action), float(action), False, False, {}

    def _observe(self, value: int) -> Any:
        if isinstance(self.observation_space, gymnasium.spaces.Box):
            return np.full(self.observation_space.shape, value, self.observation_space.dtype)
        return value


@pytest.fixture
def echo() -> Iterator[str]:
    gymnasium.register("Echo-v0", entry_point=Echo)
    yield "Echo-v0"
    del gymnasium.registry["Echo-v0"]


def run(env: HostEnv, seed: int, steps: int = 30) -> list[Any]:
    """Everything seen in some steps of seeded actions, episode after episode."""
    rng = np.random.default_rng(seed)
    seen: list[Any] = [env.reset(seed).tolist()]
    for _ in range(steps):
        obs, reward, terminated, truncated = env.step(int(rng.integers(len(env.actions))))
        seen.append((obs.tolist(), reward, terminated, truncated, env.executed))
        if terminated or truncated:
            seen.append(env.reset().tolist())
    return seen


def push_right(env: HostEnv) -> tuple[int, bool, bool]:
    env.reset(seed=0)
    for length in range(1, 600):
        _, _, terminated, truncated = env.step(1)
        if terminated or truncated:
            return length, terminated, truncated
    raise AssertionError("the episode did not end")


def test_gymnasium_cartpole_looks_like_any_environment() -> None:
    env = envs.load("gymnasium:CartPole-v1")
    assert (env.name, env.obs_shape, env.actions) == ("gymnasium:CartPole-v1", (4,), ("0", "1"))
    assert env.executed == -1
    obs = env.reset(seed=3)
    assert obs.shape == (4,)
    assert obs.dtype == np.float32
    obs, reward, terminated, truncated = env.step(1)
    assert (obs.dtype, reward, terminated, truncated) == (np.float32, 1.0, False, False)
    assert env.executed == 1
    assert run(env, 5) == run(env, 5) != run(env, 6)
    env.close()


def test_gymnasium_keeps_the_two_ends_apart() -> None:
    length, terminated, truncated = push_right(gymnasium_adapter.make("CartPole-v1"))
    assert (terminated, truncated) == (True, False)
    short = gymnasium_adapter.make("CartPole-v1", max_episode_steps=length - 1)
    assert push_right(short) == (length - 1, False, True)
    both = gymnasium_adapter.make("CartPole-v1", max_episode_steps=length)
    assert push_right(both) == (length, True, False)  # no value follows: termination wins


def test_gymnasium_offsets_are_handled(echo: str) -> None:
    env = gymnasium_adapter.make(echo)
    assert env.actions == ("5", "6", "7")
    np.testing.assert_array_equal(env.reset(seed=0), [1, 0, 0, 0])
    obs, reward, _, _ = env.step(2)
    assert reward == 7.0
    assert env.executed == 2
    np.testing.assert_array_equal(obs, [0, 0, 0, 1])


@pytest.mark.parametrize(("stored", "given"), [("uint8", "uint8"), ("float64", "float32")])
def test_gymnasium_boxes_keep_their_shape(echo: str, stored: str, given: str) -> None:
    box = gymnasium.spaces.Box(0, 255, (2, 3), np.dtype(stored).type)
    env = gymnasium_adapter.make(echo, observation_space=box)
    assert env.obs_shape == (2, 3)
    obs = env.reset(seed=0)
    assert obs.dtype == np.dtype(given)
    np.testing.assert_array_equal(obs, np.full((2, 3), 4))


def test_gymnasium_frozen_lake_is_one_hot() -> None:
    env = envs.load("gymnasium:FrozenLake-v1")
    assert env.obs_shape == (16,)
    first = env.reset(seed=0)
    np.testing.assert_array_equal(first, np.eye(16)[0])
    assert first.dtype == np.float32
    obs, *_ = env.step(2)
    assert obs.sum() == 1


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("Pendulum-v1", "gymnasium:Pendulum-v1: actions have to be Discrete"),
        ("Blackjack-v1", "gymnasium:Blackjack-v1: observations have to be Box or Discrete"),
        ("CartPol-v1", "gymnasium:CartPol-v1 cannot be made: .*Did you mean: `CartPole`"),
        ("no_such_module:X-v0", "cannot be made: No module named 'no_such_module'"),
    ],
)
def test_gymnasium_says_what_it_cannot_make(env_id: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs.load(f"gymnasium:{env_id}")


@pytest.mark.parametrize(
    ("package", "env_id"), [("gymnasium", "CartPole-v1"), ("bsuite", "catch/0")]
)
def test_a_missing_package_names_its_extra(
    package: str, env_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=package) as caught:
        envs.load(f"{package}:{env_id}")
    assert f'pip install "rbve[{package}]"' in str(caught.value)


def test_bsuite_catch_looks_like_any_environment(capsys: pytest.CaptureFixture[str]) -> None:
    env = envs.load("bsuite:catch/0")
    assert (env.name, env.obs_shape, env.actions) == ("bsuite:catch/0", (10, 5), ("0", "1", "2"))
    assert env.reset(seed=0).shape == (10, 5)
    ends = [env.step(1) for _ in range(9)]
    assert [end[2:] for end in ends] == [(False, False)] * 8 + [(True, False)]
    assert ends[-1][1] in (1.0, -1.0)
    assert env.executed == 1
    assert ends[0][0].dtype == np.float32
    with pytest.raises(ValueError, match="call reset"):
        env.step(1)
    env.close()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "experiment",
    ["catch/0", "cartpole/0", "catch_noise/5", "memory_len/3", "deep_sea_stochastic/0"],
)
def test_bsuite_follows_its_seed(experiment: str) -> None:
    env, other = (bsuite_adapter.make(experiment) for _ in range(2))
    assert run(env, 1, 100) == run(other, 1, 100) == run(env, 1, 100) != run(env, 2, 100)


class TwoEnds(dm_env.Environment):
    """One-step episodes: action 0 terminates, action 1 truncates."""

    def reset(self) -> dm_env.TimeStep:
        return dm_env.restart(np.zeros(1))

    def step(self, action: int) -> dm_env.TimeStep:
        end = dm_env.truncation if action else dm_env.termination
        return end(reward=2.0, observation=np.ones(1))

    def observation_spec(self) -> specs.Array:
        return specs.Array((1,), float)

    def action_spec(self) -> specs.DiscreteArray:
        return specs.DiscreteArray(2)


def test_a_positive_discount_at_the_end_is_a_truncation() -> None:
    env = bsuite_adapter.BsuiteEnv("bsuite:two-ends", TwoEnds())
    for action, ends in [(0, (True, False)), (1, (False, True))]:
        env.reset()
        obs, reward, *flags = env.step(action)
        assert (obs.dtype, reward, tuple(flags)) == (np.float32, 2.0, ends)


@pytest.mark.parametrize(
    ("experiment", "message"),
    [
        ("catc/0", "unknown bsuite experiment 'catc/0'. Did you mean 'bsuite:catch/0'\\?"),
        ("catch/99", "Ids are <experiment>/<number>, with: .*mountain_car"),
        ("catch", "unknown bsuite experiment 'catch'"),
    ],
)
def test_bsuite_says_which_experiments_exist(experiment: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs.load(f"bsuite:{experiment}")


@pytest.mark.parametrize("name", ["gymnasium:CartPole-v1", "bsuite:cartpole/0"])
def test_host_noise_strikes_as_often_as_asked(name: str) -> None:
    env, count, epsilon = envs.load(name, noise=0.5), 4000, 0.5
    assert isinstance(env, NoisyHostEnv)
    assert env.name == name
    env.reset(seed=0)
    differs = 0
    for _ in range(count):
        _, _, terminated, truncated = env.step(0)
        differs += env.executed != 0
        if terminated or truncated:
            env.reset()
    share = epsilon * (1 - 1 / len(env.actions))
    assert abs(differs / count - share) < 4 * (share * (1 - share) / count) ** 0.5
    assert run(env, 1) == run(env, 1) != run(env, 2)


def test_host_noise_reports_the_action_that_drove_the_environment() -> None:
    noisy, quiet = envs.load("bsuite:catch/0", noise=1.0), envs.load("bsuite:catch/0")
    np.testing.assert_array_equal(noisy.reset(seed=4), quiet.reset(seed=4))
    executed = []
    for _ in range(9):
        obs, *rest = noisy.step(1)
        executed.append(noisy.executed)
        their_obs, *their_rest = quiet.step(noisy.executed)
        np.testing.assert_array_equal(obs, their_obs)
        assert rest == their_rest
    assert len(set(executed)) == 3
    assert not isinstance(quiet, NoisyHostEnv)
