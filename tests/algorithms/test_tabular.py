"""Every algorithm on a decision process small enough to solve, through the compiled loop.

The process, its log and the training are those of tests/support/tabular.py.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from support.own_files import own_files
from support.tabular import (
    ACTIONS,
    BEHAVIOUR,
    CERTAIN,
    END,
    GAMMA,
    LAYERS,
    LOOP,
    REWARD,
    STATES,
    TOLERANCE,
    Log,
    Row,
    assert_apart,
    assert_close,
    behaviour_value,
    best_likely_value,
    best_value,
    descend,
    frequencies,
    learn,
    log,
    logged_backup,
    policy_of,
    softmax,
    solve,
    sums,
)

from rbve import algorithms
from rbve.networks.heads.quantile import Quantile


def q_of_behaviour() -> np.ndarray:
    return solve(LAYERS, REWARD, behaviour_value)


def q_best() -> np.ndarray:
    return solve(LOOP, REWARD, best_value)


@functools.cache
def q_logged() -> np.ndarray:
    """The fixed point of the logged backup."""
    rows, q = log("loop").pairs(), np.zeros((STATES, ACTIONS))
    for _ in range(50):
        q = logged_backup(rows, q)
    return q


def test_the_log_has_the_frequencies_of_the_process() -> None:
    rows = log("loop").rows()
    np.testing.assert_allclose(policy_of(rows), BEHAVIOUR)
    reward = sums(rows, lambda row: row.reward) / frequencies(rows)
    np.testing.assert_allclose(reward, REWARD.mean(axis=-1))
    ended = sums(rows, lambda row: row.next_state == END) / frequencies(rows)
    np.testing.assert_allclose(ended, (LOOP == END).mean(axis=-1))


def test_bve_reaches_the_value_of_the_behaviour() -> None:
    truth = q_of_behaviour()
    assert_apart(truth, solve(LAYERS, REWARD, best_value))
    assert_close(learn("bve", "layers").q, truth)


def test_mc_reaches_the_value_of_the_behaviour() -> None:
    assert_close(learn("mc", "layers").q, q_of_behaviour())


def test_mc_regresses_to_the_logged_returns() -> None:
    rows = log("loop").rows()
    truth = sums(rows, lambda row: row.g) / frequencies(rows)
    assert_apart(truth, q_logged())
    assert_close(learn("mc").q, truth)


def test_bve_drops_what_a_cut_leaves_without_a_next_action() -> None:
    rows, as_ends = log("loop").rows(), np.zeros((STATES, ACTIONS))
    for _ in range(50):
        as_ends = logged_backup(rows, as_ends)
    assert_apart(q_logged(), as_ends)
    assert_apart(q_logged(), q_best())
    assert_close(learn("bve").q, q_logged())


def test_rbve_without_strength_is_bve() -> None:
    assert_close(learn("rbve", lam=0.0).q, q_logged())
    assert_close(learn("rbve", lam=0.0).q, learn("bve").q, within=1e-3)


@pytest.mark.parametrize(("name", "settings"), [("dqn", {}), ("rem", {"heads": 10})])
def test_reaches_the_optimal_value(name: str, settings: dict[str, Any]) -> None:
    assert_close(learn(name, **settings).q, q_best())


def test_single_dqn_reaches_the_optimal_value() -> None:
    assert_close(learn("dqn", double="false").q, q_best())


def test_iqn_reaches_the_optimal_value() -> None:
    # Where outcomes are certain every quantile is the value itself.
    truth = solve(CERTAIN, REWARD[:, :, [0, 0]], best_value)
    learnt = learn("iqn", "certain", batch_size=32, samples=8, act_samples=8, cosines=16)
    assert_close(learnt.q, truth, within=2 * TOLERANCE)


def test_iqn_learns_quantiles() -> None:
    # In state 3 of the layers, which ends, action 0 pays −1 or 1.25 with equal chance.
    network = learn(
        "iqn", "layers", batch_size=32, samples=8, act_samples=8, cosines=16, kappa=0.1
    ).network
    assert isinstance(network.head, Quantile)
    levels = jnp.array([0.1, 0.25, 0.75, 0.9])
    features = network.torso(jnp.eye(STATES)[:, 3:])
    learnt = network.head.at(features, levels[:, None])[0, :, 0]
    assert_close(np.asarray(learnt), np.array([-1, -1, 1.25, 1.25]), within=0.15)


def optimal_goal(q: np.ndarray) -> np.ndarray:
    return (REWARD + GAMMA * np.append(q.max(axis=1), 0)[LOOP]).mean(axis=-1)


def test_cql_reaches_its_minimum() -> None:
    alpha, share = 0.3, frequencies(log("loop").rows())

    def gradient(q: np.ndarray) -> np.ndarray:
        visits = share.sum(axis=1, keepdims=True)
        return 2 * share * (q - optimal_goal(q)) + alpha * (visits * softmax(q) - share)

    truth = descend(gradient)
    assert_apart(truth, q_best())
    assert_close(learn("cql", alpha=alpha).q, truth)


def ranking_gradient(q: np.ndarray, strength: np.ndarray, nu: float) -> np.ndarray:
    """Slope of Σ_{s,a} strength · Σ_{i≠a} max(Q(s, i) − Q(s, a) + ν, 0)²."""
    slope = np.zeros((STATES, ACTIONS))
    for state, action, other in itertools.product(range(STATES), range(ACTIONS), range(ACTIONS)):
        if other != action:
            lead = max(q[state, other] - q[state, action] + nu, 0.0)
            slope[state, other] += 2 * strength[state, action] * lead
            slope[state, action] -= 2 * strength[state, action] * lead
    return slope


def weight_sums(rows: list[Row], beta: float, cap: float) -> np.ndarray:
    g = np.array([row.g for row in rows])
    mean, deviation = g.mean(), g.std()
    return sums(rows, lambda row: min(np.exp((row.g - mean) / deviation / beta), cap))


def test_rdqn_reaches_its_minimum() -> None:
    lam, nu, rows = 0.1, 0.5, log("loop").rows()
    share, strength = frequencies(rows), lam * weight_sums(rows, beta=0.5, cap=20.0)

    def gradient(q: np.ndarray) -> np.ndarray:
        return 2 * share * (q - optimal_goal(q)) + ranking_gradient(q, strength, nu)

    truth = descend(gradient)
    assert_apart(truth, q_best())
    assert_close(learn("rdqn", lam=lam, nu=nu).q, truth)


def test_rbve_reaches_its_minimum() -> None:
    lam, nu, rows = 0.1, 0.5, log("loop").pairs()
    share, strength = frequencies(rows), lam * weight_sums(rows, beta=0.5, cap=5.0)
    # The logged backup is linear in Q: one column per entry spares the loops over rows.
    offset = logged_backup(rows, np.zeros((STATES, ACTIONS)))
    basis = np.eye(STATES * ACTIONS).reshape(-1, STATES, ACTIONS)
    linear = np.stack([(logged_backup(rows, unit) - offset).ravel() for unit in basis], axis=1)

    def gradient(q: np.ndarray) -> np.ndarray:
        goal = offset + (linear @ q.ravel()).reshape(STATES, ACTIONS)
        return 2 * share * (q - goal) + ranking_gradient(q, strength, nu)

    truth = descend(gradient)
    assert_apart(truth, q_logged())
    assert_close(learn("rbve", lam=lam, nu=nu, cap=5.0).q, truth)


def test_bcq_reaches_the_optimal_value_among_likely_actions() -> None:
    truth = solve(LOOP, REWARD, best_likely_value)
    assert_apart(truth, q_best())
    assert_close(learn("bcq").q, truth)


def test_bcq_policy_reaches_its_minimum() -> None:
    penalty, share = 0.3, frequencies(log("loop").rows())
    visits = share.sum(axis=1, keepdims=True)

    def gradient(logits: np.ndarray) -> np.ndarray:
        return visits * (softmax(logits) + 2 * penalty * logits / ACTIONS) - share

    learnt = learn("bcq", logit_penalty=penalty).logits
    assert learnt is not None
    assert_close(learnt, descend(gradient))


def test_bc_reaches_the_behaviour() -> None:
    learnt = learn("bc").logits
    assert learnt is not None
    assert_close(softmax(learnt), BEHAVIOUR, within=TOLERANCE / 2)


def test_filtered_bc_reaches_the_behaviour_of_the_better_episodes() -> None:
    courses = log("loop").courses
    returns = [sum(decision.reward for decision in course) for course in courses]
    better = [c for c, r in zip(courses, returns, strict=True) if r > np.mean(returns)]
    truth = policy_of(Log(better).rows())
    assert_apart(truth, BEHAVIOUR)
    learnt = learn("filtered_bc").logits
    assert learnt is not None
    assert_close(softmax(learnt), truth, within=TOLERANCE / 2)


def test_every_algorithm_is_here() -> None:
    solved = {"bve", "mc", "rbve", "dqn", "rem", "iqn", "cql", "rdqn", "bcq", "bc", "filtered_bc"}
    assert solved | own_files(learn.__name__) == set(algorithms.names())
