"""Exact values against rational arithmetic, published values and logs; what logs hold."""

from __future__ import annotations

import functools
import importlib.metadata
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rbve
from rbve.data.check import check_values
from rbve.envs.base import MDP
from rbve.evaluation import exact
from rbve.paper.theory import _exact as rational

needs_icu = pytest.mark.skipif(
    not any(importlib.metadata.distributions(name="icu-sepsis")),
    reason='the arrays of icu-sepsis: pip install "rbve[icu]"',
)


def random_mdp(seed: int = 0, gamma: float = 0.9, masks: bool = False) -> MDP:
    """Five states, three actions, chances in eighths; the last state is the end."""
    rng = np.random.default_rng(seed)
    transition = rng.multinomial(8, np.full(5, 0.2), (5, 3)) / 8
    reward = rng.integers(-3, 4, (5, 3, 5)) / 4
    start = np.array([0.5, 0.25, 0.125, 0.125, 0])
    legal = rng.random((5, 3)) < 0.6
    legal[np.arange(5), rng.integers(0, 3, 5)] = True
    terminal = np.arange(5) == 4
    return MDP(transition, reward, start, terminal, legal if masks else None, gamma)


def random_policy(mdp: MDP, seed: int = 1) -> np.ndarray:
    chances = np.random.default_rng(seed).integers(1, 9, mdp.transition.shape[:2]).astype(float)
    chances = chances if mdp.legal is None else chances * mdp.legal
    return chances / chances.sum(axis=1, keepdims=True)


def in_fractions(mdp: MDP) -> rational.MDP:
    def outcomes(state: int, action: int) -> list[rational.Outcome]:
        return [
            rational.Outcome(
                rational.END if after == 4 else after,
                Fraction(float(mdp.reward[state, action, after])),
                Fraction(float(mdp.transition[state, action, after])),
            )
            for after in range(5)
        ]

    moves = [[outcomes(state, action) for action in range(3)] for state in range(4)]
    return rational.MDP(moves, Fraction(mdp.gamma))


@pytest.mark.parametrize("gamma", [0.9, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_values_equal_those_in_rational_numbers(seed: int, gamma: float) -> None:
    mdp = random_mdp(seed, gamma)
    policy = random_policy(mdp)
    shares = [[Fraction(float(each)) for each in row] for row in policy[:4]]
    expected = rational.evaluate(in_fractions(mdp), shares)
    values = exact.state_values(mdp, policy)
    np.testing.assert_allclose(values, [*map(float, expected), 0], rtol=1e-10, atol=1e-12)
    q = rational.action_values(in_fractions(mdp), expected)
    found = exact.action_values(mdp, values)
    np.testing.assert_allclose(found[:4], np.array(q, float), rtol=1e-10, atol=1e-12)
    assert not found[4].any()
    start = sum(float(v) * p for v, p in zip(expected, mdp.start[:4], strict=True))
    assert exact.value(mdp, policy) == pytest.approx(start, rel=1e-10)


@pytest.mark.parametrize("worst", [False, True])
def test_the_best_and_the_worst_of_all_deterministic_policies(worst: bool) -> None:
    mdp = random_mdp(4, masks=True)
    assert mdp.legal is not None
    choices = [np.flatnonzero(row) for row in mdp.legal[:4]]
    every = np.array(np.meshgrid(*choices)).reshape(4, -1).T
    values = [exact.value(mdp, np.eye(3)[[*actions, 0]]) for actions in every]
    assert len(values) > 3
    policy = exact.optimal_policy(mdp, worst)
    pick = min if worst else max
    assert exact.value(mdp, policy) == pytest.approx(pick(values), abs=1e-12)
    assert not policy[:4][~mdp.legal[:4]].any()


def test_a_policy_that_never_ends_has_no_value() -> None:
    transition = np.zeros((2, 2, 2))
    transition[0, 0, 0] = transition[0, 1, 1] = transition[1, :, 1] = 1
    mdp = MDP(transition, np.ones((1, 1, 1)), np.array([1.0, 0]), np.array([False, True]))
    assert exact.value(mdp, np.array([[0.25, 0.75], [0, 0]])) == pytest.approx(4 / 3)
    with pytest.raises(ValueError, match=r"from state 0 this policy never ends.*gamma below 1"):
        exact.value(mdp, np.array([[1.0, 0], [0, 0]]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda policy: policy[:3], r"a table \(5, 3\), states by actions; got \(3, 3\)"),
        (lambda policy: policy * 1.01, "state 0: .* got a sum of 1.01"),
        (lambda policy: policy - [[2, -2, 0]], "state 0: probabilities"),
        (lambda policy: policy * np.nan, "state 0: .* got a sum of nan"),
        (lambda policy: np.full((5, 3), 1 / 3), "on actions that are not legal; .*masks=False"),
    ],
)
def test_tables_that_are_no_policy(change: Any, message: str) -> None:
    mdp = random_mdp(masks=True)
    with pytest.raises(ValueError, match=message):
        exact.sample_log(mdp, change(random_policy(mdp)), 5, 0)


def test_logs_need_episodes_and_a_start() -> None:
    mdp = random_mdp()
    with pytest.raises(ValueError, match="episodes and max_steps are at least 1; got 0"):
        exact.sample_log(mdp, random_policy(mdp), 0, 0)
    ended = MDP(mdp.transition, mdp.reward, np.eye(5)[4], mdp.terminal)
    with pytest.raises(ValueError, match="cannot start in a terminal state"):
        exact.sample_log(ended, random_policy(mdp), 5, 0)


def check_log(log: exact.SampledLog, mdp: MDP, policy: np.ndarray) -> None:
    """Every row is what the tables say of its state."""
    data, state = log
    check_values(data)
    decided = data.action >= 0
    chosen = policy[state[decided], data.action[decided]]
    assert data.propensity is not None
    np.testing.assert_array_equal(data.propensity[decided], chosen.astype(np.float32))
    if mdp.legal is None:
        assert data.legal is None
    else:
        assert data.legal is not None
        np.testing.assert_array_equal(data.legal, mdp.legal[state])
    rows = np.flatnonzero(decided)
    now, after, action = state[rows], state[rows + 1], data.action[rows]
    assert (mdp.transition[now, action, after] > 0).all()
    reward = np.broadcast_to(mdp.reward, mdp.transition.shape)
    np.testing.assert_array_equal(data.reward[rows], reward[now, action, after].astype(np.float32))
    final = data.offsets[1:] - 1
    np.testing.assert_array_equal(np.flatnonzero(~decided), final)
    np.testing.assert_array_equal(data.terminated, mdp.terminal[state[final]])
    assert not mdp.terminal[now].any()
    for index in range(3):
        episode = data.episode(index)
        assert data.episode_return[index] == episode.reward.sum(dtype=np.float64)


@pytest.mark.parametrize("masks", [False, True])
def test_a_log_of_a_small_mdp(masks: bool) -> None:
    mdp = random_mdp(2, masks=masks)
    policy = random_policy(mdp)
    log = exact.sample_log(mdp, policy, 4000, 7)
    check_log(log, mdp, policy)
    np.testing.assert_array_equal(log.dataset.obs, np.eye(5)[log.state])
    decided = log.dataset.action >= 0
    for state in range(4):
        for action in range(3):
            here = log.state[decided] == state
            share = np.mean(log.dataset.action[decided][here] == action)
            p = policy[state, action]
            assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / here.sum()) + 1e-9
    discounted = np.array([
        (episode.reward * mdp.gamma ** np.arange(len(episode.reward))).sum()
        for episode in map(log.dataset.episode, range(4000))
    ])  # fmt: skip
    error = discounted.std() / np.sqrt(4000)
    assert abs(discounted.mean() - exact.value(mdp, policy)) < 4 * error


def test_seeds_and_truncation() -> None:
    mdp = random_mdp(2)
    policy = random_policy(mdp)
    one, again, other = (exact.sample_log(mdp, policy, 200, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.state, again.state)
    np.testing.assert_array_equal(one.dataset.action, again.dataset.action)
    assert one.state.shape != other.state.shape or (one.state != other.state).any()
    short = exact.sample_log(mdp, policy, 200, 3, max_steps=2)
    check_log(short, mdp, policy)
    assert short.dataset.lengths.max() == 2
    cut = ~short.dataset.terminated
    assert 0 < cut.sum() < 200
    assert (short.dataset.lengths[cut] == 2).all()


# ICU-Sepsis


@functools.cache
def icu() -> Any:
    from rbve.envs import icu_sepsis

    return icu_sepsis.tables()


@needs_icu
def test_values_of_icu_sepsis_are_the_published_ones() -> None:
    mdp = icu().mdp
    admissible = mdp.legal / mdp.legal.sum(axis=1, keepdims=True)
    values = {
        "random": exact.value(mdp, admissible),
        "clinicians": exact.value(mdp, icu().clinicians),
        "admissible clinicians": exact.value(mdp, icu().admissible_clinicians),
        "optimal": exact.value(mdp, exact.optimal_policy(mdp)),
        "worst": exact.value(mdp, exact.optimal_policy(mdp, worst=True)),
    }
    assert {name: round(value, 4) for name, value in values.items()} == {
        "random": 0.7801, "clinicians": 0.7818, "admissible clinicians": 0.7820,
        "optimal": 0.8751, "worst": 0.6330,
    }  # fmt: skip
    every = np.full((716, 25), 1 / 25)  # an inadmissible action acts as a random admissible one
    assert exact.value(mdp, every) == pytest.approx(values["random"], rel=1e-12)


@needs_icu
def test_a_log_of_icu_sepsis() -> None:
    mdp, table = icu().mdp, icu().admissible_clinicians
    log = exact.sample_log(mdp, table, 20_000, 0, icu().features)
    check_log(log, mdp, table)
    np.testing.assert_array_equal(log.dataset.obs, icu().features.astype(np.float32)[log.state])
    returns = log.dataset.episode_return
    error = returns.std() / np.sqrt(20_000)
    assert 0.002 < error < 0.004
    assert abs(returns.mean() - exact.value(mdp, table)) < 3 * error
    with pytest.raises(ValueError, match=r"not legal; .*masks=False"):
        exact.sample_log(mdp, icu().clinicians, 10, 0)
    assert exact.sample_log(mdp, icu().clinicians, 10, 0, masks=False).dataset.legal is None


@needs_icu
@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_recording_the_clinicians(epsilon: float, tmp_path: Path) -> None:
    out = tmp_path / "data"
    data = rbve.record("icu_sepsis", out, 300, "clinicians", epsilon=epsilon, seed=5)
    assert data.num_episodes == 300
    assert data.provenance["behaviour"] == "clinicians"
    features = icu().features.astype(np.float32)
    index = {row.tobytes(): state for state, row in enumerate(features[:713])}
    decided = data.action >= 0
    state = np.array([index[row.tobytes()] for row in np.asarray(data.obs)[decided]])
    mdp = icu().mdp
    uniform = mdp.legal / mdp.legal.sum(axis=1, keepdims=True)
    table = (1 - epsilon) * icu().admissible_clinicians + epsilon * uniform
    assert data.propensity is not None
    assert data.legal is not None
    expected = table[state, data.action[decided]]
    np.testing.assert_allclose(data.propensity[decided], expected, rtol=1e-6)
    np.testing.assert_array_equal(data.legal[decided], mdp.legal[state])


@needs_icu
@pytest.mark.parametrize(
    ("env", "plan", "message"),
    [
        ("catch", {}, "plays icu_sepsis; got catch"),
        ("icu_sepsis", {"noise": 0.1}, "recorded without noise; give epsilon"),
        ("icu_sepsis", {"epsilon": 2}, r"epsilon must lie in \[0, 1\]"),
        ("icu_sepsis", {"steps": 5}, "steps are those of an online agent"),
    ],
)
def test_what_clinicians_do_not_do(
    env: str, plan: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        rbve.record(env, tmp_path / "data", None, "clinicians", **plan)
