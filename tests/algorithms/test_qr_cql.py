"""QR-DQN with CQL: by hand, against a float64 reference, and to its fixed point."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.losses import batch, head, values
from support.reference import (
    ITEMS,
    PARTS,
    Case,
    allowed,
    best,
    compare,
    negative_log_likelihood,
)
from support.tabular import (
    ACTIONS,
    CERTAIN,
    GAMMA,
    LOOP,
    REWARD,
    STATES,
    TOLERANCE,
    assert_apart,
    assert_close,
    best_value,
    descend,
    frequencies,
    learn,
    log,
    softmax,
    solve,
)

from rbve import algorithms
from rbve.networks import build
from rbve.types import Head, Views

LOG2, LOG5 = math.log(2), math.log(5)

# Quantiles of action 0 at s: log 2 ∓ 1; the means are log 2 and log 5. By the target network action
# 1 is best at s', with the quantiles 0 and 4; the online network prefers 0. Row 1 terminates.
VIEWS = Views(
    now=head(
        [[LOG2, LOG5]] * 2,
        parts=[[[LOG2 - 1, LOG5], [LOG2 + 1, LOG5]]] * 2,
        taus=[[0.25, 0.75]] * 2,
    ),
    next=head([[9, 0]] * 2, parts=[[[9, 0], [9, 0]]] * 2, taus=[[0.25, 0.75]] * 2),
    target=head([[1, 2]] * 2, parts=[[[1, 0], [1, 4]]] * 2, taus=[[0.25, 0.75]] * 2),
)
BATCH = batch([0, 0], reward=[LOG2, LOG2], discount=[0.5, 0])
CONSERVATIVE = 1.2527630  # log 7 − log 2


@pytest.mark.parametrize(
    ("settings", "weight", "expected"),
    [
        # Goals log 2 + (0, 2). τ = .25: errors 1, 3, Huber .5, 2.5, weighed .25: mean .375.
        # τ = .75: errors −1, 1, Huber .5, .5, weighed .25, .75: mean .25. Row 1: errors 1 and −1.
        ({"alpha": 0.5}, 0.5, [0.625, 0.25]),
        ({}, 1, [0.625, 0.25]),
        ({"alpha": 0.0}, 0, [0.625, 0.25]),
        # Huber ½ and 2·(3 − 1) = 4, halved: .28125; .125.
        ({"kappa": 2.0}, 1, [0.40625, 0.125]),
    ],
)
def test_quantiles_and_the_soft_maximum_of_means(
    settings: dict[str, Any], weight: float, expected: list[float]
) -> None:
    loss = values("qr_cql", VIEWS, BATCH, **settings)
    np.testing.assert_allclose(loss, np.add(expected, weight * CONSERVATIVE), rtol=1e-6)


def test_illegal_actions_are_neither_chosen_nor_lowered() -> None:
    masked = BATCH._replace(
        legal=jnp.array([[True, False], [True, True]]),
        next_legal=jnp.array([[True, False], [False, False]]),
    )
    # Goals log 2 + ½: .25·(1.5 − .5) and .25·.125; of one action the soft maximum is Q itself.
    loss = values("qr_cql", VIEWS, masked)
    np.testing.assert_allclose(loss, [0.28125, 0.25 + CONSERVATIVE], rtol=1e-6)


def test_levels_are_the_midpoints_and_the_mean_acts() -> None:
    qr_cql = algorithms.load("qr_cql")
    network = build((5,), 3, qr_cql.head, qr_cql.options(quantiles=4), (8,), jax.random.key(0))
    said = network(jax.random.normal(jax.random.key(1), (2, 5)), jax.random.key(2))
    assert said.parts.shape == (2, 4, 3)
    np.testing.assert_allclose(said.taus, [[0.125, 0.375, 0.625, 0.875]] * 2)
    np.testing.assert_allclose(said.q, said.parts.mean(axis=1), rtol=1e-6)
    assert (said.parts[0] != said.parts[1]).all()
    assert qr_cql.scores is algorithms.greedy


def reference(case: Case, now: Head) -> np.ndarray:
    losses, batch, target = np.zeros(ITEMS), case.batch, case.views.target
    kappa = case.config.kappa
    for item in range(ITEMS):
        action, among = batch.action[item], allowed(batch.legal, item)
        choice = best(target.q[item], allowed(batch.next_legal, item))
        for i in range(PARTS):
            for j in range(PARTS):
                goal = batch.reward[item] + batch.discount[item] * target.parts[item, j, choice]
                error = goal - now.parts[item, i, action]
                size = abs(error)
                huber = 0.5 * size**2 if size <= kappa else kappa * (size - 0.5 * kappa)
                tau = now.taus[item, i]
                losses[item] += (tau if error >= 0 else 1 - tau) * huber / kappa / PARTS
        losses[item] += case.config.alpha * negative_log_likelihood(now.q[item], action, among)
    return losses


@pytest.mark.parametrize("masked", [False, True], ids=["all legal", "masked"])
def test_loss_and_gradient(masked: bool) -> None:
    compare(reference, "qr_cql", {"alpha": 0.8, "kappa": 0.5, "quantiles": PARTS}, masked)


def test_without_the_conservative_term_it_reaches_the_optimal_value() -> None:
    # Where outcomes are certain every quantile is the value itself.
    truth = solve(CERTAIN, REWARD[:, :, [0, 0]], best_value)
    learnt = learn("qr_cql", "certain", batch_size=32, quantiles=4, alpha=0.0)
    assert_close(learnt.q, truth, within=2 * TOLERANCE)


def test_reaches_the_minimum_of_its_quantiles() -> None:
    count, alpha, kappa = 4, 0.3, 0.3
    levels = (np.arange(count) + 0.5) / count
    share = frequencies(log("loop").rows())
    visits = share.sum(axis=1, keepdims=True)

    def gradient(table: np.ndarray, alpha: float = alpha) -> np.ndarray:
        """By every quantile (S, A, N); goals are held still."""
        q = table.mean(axis=-1)
        after = table[np.arange(STATES), q.argmax(axis=1)]
        after = np.append(after, np.zeros((1, count)), axis=0)  # nothing follows the end
        goals = (REWARD[..., None] + GAMMA * after[LOOP]).reshape(STATES, ACTIONS, 1, -1)
        error = goals - table[..., None]  # (S, A, N, outcomes · N)
        side = np.abs(levels[:, None] - (error < 0))
        slope = -np.mean(side * np.clip(error, -kappa, kappa) / kappa, axis=-1)
        lowered = alpha * (visits * softmax(q) - share) / count
        return share[..., None] * slope + lowered[..., None]

    shape = (STATES, ACTIONS, count)
    truth = descend(gradient, 4.0, shape)
    free = descend(lambda table: gradient(table, 0.0), 4.0, shape)
    assert_apart(truth.mean(axis=-1), free.mean(axis=-1))
    assert np.ptp(free, axis=-1).max() > 1  # outcomes differ, and so do quantiles

    learnt = learn("qr_cql", quantiles=count, alpha=alpha, kappa=kappa)
    assert learnt.head.parts is not None
    assert_close(learnt.q, truth.mean(axis=-1))
    assert_close(np.moveaxis(np.asarray(learnt.head.parts), 1, 2), truth, within=3 * TOLERANCE)
