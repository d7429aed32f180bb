"""Rollouts against a slow loop over the environment, and value figures against hand formulas."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import envs
from rbve.envs.base import Env, Step
from rbve.evaluation.rollout import Evaluation, EvaluationPlan, make_rollout, random_return

GAMMA = 0.9


def linear(params: Any, config: Any, obs: jax.Array, legal: Any, key: jax.Array) -> Any:
    """Values linear in the observation; scores differ from values by a bias, and a key matters."""
    q = obs.reshape(len(obs), -1) @ params
    noise = 0.01 * jax.random.normal(key, (params.shape[1],))
    return q + config + noise, q + noise


def constant(value: float, favourite: int, actions: int = 3) -> Any:
    def act(params: Any, config: Any, obs: jax.Array, legal: Any, key: jax.Array) -> Any:
        scores = jnp.zeros((len(obs), actions)).at[:, favourite].set(1.0)
        return scores, jnp.full((len(obs), actions), value)

    return act


def slow_rollout(
    env: Env, params: Any, config: Any, episodes: int, epsilon: float, key: jax.Array, clip: bool
) -> dict[str, np.ndarray]:
    """One episode after the other, with the keys the fast rollout uses, in float64."""
    key_reset, key_explore, key_net, key_env = jax.random.split(key, 4)
    strike, which = np.asarray(jax.random.uniform(key_explore, (2, env.max_steps, episodes)))
    step, reset, act = jax.jit(env.step), jax.jit(env.reset), jax.jit(linear)
    found: list[dict[str, Any]] = []
    for e in range(episodes):
        state, obs = reset(jax.random.split(key_reset, episodes)[e])
        rewards, values, gaps = [], [], []
        terminated = truncated = False
        while not (terminated or truncated):
            t = len(rewards)
            scores, q = act(params, config, obs[None], None, jax.random.fold_in(key_net, t))
            action = int(np.argmax(scores[0]))
            if strike[t, e] < epsilon:
                action = int(which[t, e] * len(env.actions))
            env_key = jax.random.split(jax.random.fold_in(key_env, t), episodes)[e]
            state, outcome = step(state, jnp.int32(action), env_key)
            ordered = np.sort(np.asarray(q[0], np.float64))
            rewards.append(float(outcome.reward))
            values.append(float(q[0, action]))
            gaps.append(ordered[-1] - ordered[-2])
            obs = outcome.obs
            terminated, truncated = bool(outcome.terminated), bool(outcome.truncated)
        kept = np.clip(rewards, -1, 1) if clip else np.array(rewards)
        g = [sum(GAMMA**k * r for k, r in enumerate(kept[t:])) for t in range(len(kept))]
        error = np.array(values) - np.array(g)
        over = np.maximum(error, 0) ** 2
        found.append(
            {
                "return": sum(rewards),
                "episode_length": len(rewards),
                "terminated": terminated,
                "overestimation": over.mean(),
                "start_overestimation": over[0],
                "value_error": error.mean(),
                "action_gap": np.mean(gaps),
                **({"clipped_return": sum(kept)} if clip else {}),
            }
        )
    return {name: np.array([each[name] for each in found]) for name in found[0]}


@pytest.mark.parametrize(
    ("name", "noise", "epsilon", "clip"),
    [("catch", 0.3, 0.2, False), ("cartpole", 0.0, 0.1, False), ("catch", 0.0, 0.0, True)],
)
def test_equals_a_slow_loop(name: str, noise: float, epsilon: float, clip: bool) -> None:
    env = envs.load(name, noise)
    assert isinstance(env, Env)
    episodes, key = 6, jax.random.key(7)
    params = jax.random.normal(jax.random.key(1), (int(np.prod(env.obs_shape)), len(env.actions)))
    config = jnp.arange(len(env.actions)) * 0.1
    rollout = jax.jit(make_rollout(env, linear, EvaluationPlan(episodes, epsilon, GAMMA, clip)))
    found = rollout(params, config, key)
    expected = slow_rollout(env, params, config, episodes, epsilon, key, clip)
    assert found.keys() == expected.keys()
    for metric in expected:
        np.testing.assert_allclose(
            found[metric], expected[metric], rtol=1e-4, atol=1e-5, err_msg=metric
        )
    assert len(set(map(float, expected["value_error"]))) > 1


@pytest.mark.parametrize("value", [2.0, -2.0])
def test_constant_values_in_catch(value: float) -> None:
    """9 decisions, then ±1: the error of step t is value ∓ γ^(8 − t)."""
    env = envs.load("catch")
    assert isinstance(env, Env)
    stay = 1
    run = jax.jit(make_rollout(env, constant(value, stay), EvaluationPlan(50, 0.0, GAMMA)))
    found = run((), (), jax.random.key(0))
    powers = GAMMA ** np.arange(9)
    for k in range(50):
        reward = float(found["return"][k])
        assert reward in (-1.0, 1.0)
        error = value - reward * powers
        assert float(found["episode_length"][k]) == 9
        assert bool(found["terminated"][k])
        assert float(found["value_error"][k]) == pytest.approx(error.mean(), rel=1e-5)
        over = np.mean(np.maximum(error, 0) ** 2)
        assert float(found["overestimation"][k]) == pytest.approx(over, rel=1e-5)
        assert float(found["action_gap"][k]) == 0
    # A paddle that stays in the middle column catches a fifth of the balls.
    assert {float(r) for r in found["return"]} == {-1.0, 1.0}
    summary = Evaluation(found).figures()
    assert summary["return"] == (pytest.approx(float(np.mean(found["return"]))), 50)
    assert summary["episode_length"] == (9.0, 50)
    assert summary["overestimation"][1] == 50
    assert Evaluation(found, values=False).figures().keys() == {"return", "episode_length"}


def counter(limit: int, terminal_start: int) -> Env:
    """Counts steps with reward 3 each. Starts of 1 terminate after 2 steps, others are cut."""

    def reset(key: jax.Array) -> Any:
        start = jax.random.bernoulli(key).astype(jnp.int32)
        return (start, jnp.int32(0)), jnp.asarray([start], jnp.float32)

    def step(state: Any, action: jax.Array, key: jax.Array) -> Any:
        start, t = state[0], state[1] + 1
        terminated = (start == terminal_start) & (t == 2)
        return (start, t), Step(
            obs=jnp.asarray([start], jnp.float32),
            reward=jnp.float32(3),
            terminated=terminated,
            truncated=(t == limit) & ~terminated,
            executed=action,
        )

    return Env("counter", (1,), ("a", "b"), limit, reset, step)


def test_truncated_episodes_are_reported_apart() -> None:
    run = make_rollout(counter(5, 1), constant(10.0, 0, 2), EvaluationPlan(20, 0.0, GAMMA))
    found = jax.jit(run)((), (), jax.random.key(0))
    ended = np.asarray(found["terminated"])
    assert 0 < ended.sum() < 20
    np.testing.assert_array_equal(found["episode_length"], np.where(ended, 2, 5))
    np.testing.assert_array_equal(found["return"], np.where(ended, 6, 15))
    summary = Evaluation(found).figures()
    assert summary["return"] == (pytest.approx(np.where(ended, 6, 15).mean()), 20)
    # Of the terminated alone: G is 3 + 0.9 · 3 = 5.7, then 3.
    assert summary["value_error"] == (pytest.approx((4.3 + 7) / 2), int(ended.sum()))
    assert summary["overestimation"] == (
        pytest.approx((4.3**2 + 7**2) / 2, rel=1e-5),
        int(ended.sum()),
    )
    assert summary["action_gap"][1] == 20


def test_no_value_figures_when_all_are_truncated() -> None:
    run = make_rollout(counter(5, 2), constant(10.0, 0, 2), EvaluationPlan(4, 0.0, GAMMA))
    summary = Evaluation(jax.jit(run)((), (), jax.random.key(0))).figures()
    assert np.isnan(summary["value_error"][0])
    assert np.isnan(summary["overestimation"][0])
    assert summary["value_error"][1] == summary["overestimation"][1] == 0
    assert summary["return"] == (15.0, 4)


def test_clipped_rewards_enter_the_values_and_not_the_return() -> None:
    run = make_rollout(
        counter(5, 1), constant(10.0, 0, 2), EvaluationPlan(20, 0.0, GAMMA, clip_rewards=True)
    )
    found = jax.jit(run)((), (), jax.random.key(0))
    ended = np.asarray(found["terminated"])
    np.testing.assert_array_equal(found["return"], np.where(ended, 6, 15))
    np.testing.assert_allclose(np.asarray(found["value_error"])[ended], (8.1 + 9) / 2, rtol=1e-6)
    # Rewards of 3 become 1 each: 2 steps with a termination, else 5.
    np.testing.assert_array_equal(found["clipped_return"], np.where(ended, 2, 5))
    clipped, count = Evaluation(found).figures()["clipped_return"]
    assert count == 20
    assert clipped == pytest.approx(np.mean(np.where(ended, 2, 5)))


def bandit(actions: int) -> Env:
    """One step; the reward is the number of the action."""

    def reset(key: jax.Array) -> Any:
        return jnp.int32(0), jnp.zeros(1)

    def step(state: Any, action: jax.Array, key: jax.Array) -> Any:
        yes = jnp.asarray(True)
        return state, Step(jnp.zeros(1), action.astype(jnp.float32), yes, ~yes, action)

    return Env("bandit", (1,), tuple("abcdefgh"[:actions]), 1, reset, step)


@pytest.mark.parametrize("epsilon", [1.0, 0.25])
def test_epsilon_is_the_share_of_uniform_actions(epsilon: float) -> None:
    episodes = 4000
    run = jax.jit(
        make_rollout(bandit(4), constant(0.0, 2, 4), EvaluationPlan(episodes, epsilon, GAMMA))
    )
    returns = np.asarray(run((), (), jax.random.key(3))["return"], int)
    counts = np.bincount(returns, minlength=4)
    share = np.full(4, epsilon / 4)
    share[2] += 1 - epsilon
    deviation = np.sqrt(episodes * share * (1 - share))
    assert np.all(np.abs(counts - episodes * share) < 5 * deviation)


def test_random_return_of_catch() -> None:
    """Exact by dynamic programming: where 9 uniform moves of the paddle end."""
    move = np.zeros((5, 5))
    for column in range(5):
        for action in (-1, 0, 1):
            move[column, np.clip(column + action, 0, 4)] += 1 / 3
    place = np.linalg.matrix_power(move, 9)[2]
    caught = place.mean()
    expected = 2 * caught - 1
    env = envs.load("catch")
    assert isinstance(env, Env)
    assert random_return(env) == pytest.approx(expected, abs=5 * 0.8 / np.sqrt(1000))


def test_seeds_of_rollouts() -> None:
    env = envs.load("catch")
    assert isinstance(env, Env)
    run = jax.jit(make_rollout(env, constant(0.0, 1), EvaluationPlan(64, 0.5, GAMMA)))
    first, again, other = (np.asarray(run((), (), jax.random.key(k))["return"]) for k in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
