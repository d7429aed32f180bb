"""Implicit Q-learning: by hand, against a float64 reference, and to its fixed point."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from support.losses import batch, head, values
from support.reference import (
    ITEMS,
    Case,
    allowed,
    compare,
    negative_log_likelihood,
    penalty,
)
from support.tabular import (
    BEHAVIOUR,
    LOOP,
    REWARD,
    STATES,
    TOLERANCE,
    assert_apart,
    assert_close,
    behaviour_value,
    best_value,
    learn,
    softmax,
    solve,
)

from rbve import algorithms, ops
from rbve.types import Head, Views

LOG2, LOG5 = math.log(2), math.log(5)


def said(q: Any, v: Any, logits: Any = ((0, 0, 0), (0, 0, 0))) -> Head:
    return head(q, logits=logits)._replace(extra={"v": jnp.array(v, jnp.float32)})


# Row 0: A = 3 − 2 and V(s') = 4; row 1 terminates, A = −1 − 1. Every other network says otherwise.
# π(a | s) = 2/8 and 5/8; β = log 2, so that w = 2 and ¼.
VIEWS = Views(
    now=said([[7, 1, 7], [7, 7, 2]], [2, 1], [[0, LOG2, LOG5]] * 2),
    next=said([[8, 9, 10], [8, 9, 10]], [4, 90]),
    target=said([[11, 12, 13], [11, 12, 13]], [-6, 90]),
    target_at_s=Partial(lambda head: head, said([[7, 3, 7], [7, 7, -1]], [20, 30])),
)
BATCH = batch([1, 2], discount=[0.5, 0])
SETTINGS = {"expectile": 0.7, "inverse_temperature": LOG2}


def test_three_losses() -> None:
    # (1 − (.5 + .5·4))² + .7·1 + 2·log 4; the target network's V gives 12.25 for 2.25, the online
    # Q an advantage of −1, which turns .7 into .3 and 2 into ½; exp(A/β) is 4.2.
    # (2 − .5)² + (1 − .7)·4 + ¼·log 8/5
    loss = values("iql", VIEWS, BATCH, **SETTINGS)
    np.testing.assert_allclose(loss, [5.7225887, 3.5675009], rtol=1e-6)


def test_weights_are_capped() -> None:
    loss = values("iql", VIEWS, BATCH, cap=1.5, **SETTINGS)
    np.testing.assert_allclose(loss, [2.95 + 1.5 * 1.3862944, 3.5675009], rtol=1e-6)
    huge = values("iql", VIEWS, BATCH, inverse_temperature=1e4)  # exp overflows
    np.testing.assert_allclose(huge, [2.95 + 100 * 1.3862944, 3.45], rtol=1e-6)


def test_the_policy_chooses_among_legal_actions() -> None:
    legal = [[True, True, False], [False, True, True]]
    masked = batch([1, 2], discount=[0.5, 0], legal=legal, next_legal=[[False] * 3] * 2)
    # 2·log 3/2 and ¼·log 7/5
    loss = values("iql", VIEWS, masked, **SETTINGS)
    np.testing.assert_allclose(loss, [2.95 + 0.8109302, 3.45 + 0.0841181], rtol=1e-6)


def test_an_expectile_stays_square_under_huber() -> None:
    loss = values("iql", VIEWS, BATCH, ops.TD("huber"), **SETTINGS)
    np.testing.assert_allclose(loss, [5.7225887 - 1.25, 3.5675009 - 1.25], rtol=1e-6)


def test_weights_are_those_of_values_not_of_their_rescaled_form() -> None:
    def rescaled(head: Head) -> Head:
        assert head.extra is not None
        return head._replace(q=ops.rescale(head.q), extra={"v": ops.rescale(head.extra["v"])})

    views = Views(
        *(rescaled(each) for each in VIEWS[:3]),
        Partial(lambda head: head, rescaled(VIEWS.target_now)),
    )
    loss = values("iql", views, BATCH, ops.TD(rescaled=True), **SETTINGS)
    h = lambda x: float(ops.rescale(jnp.float32(x)))  # noqa: E731
    expected = [
        (h(1) - h(2.5)) ** 2 + 0.7 * (h(3) - h(2)) ** 2 + 2 * 1.3862944,
        (h(2) - h(0.5)) ** 2 + 0.3 * (h(-1) - h(1)) ** 2 + 0.25 * 0.4700036,
    ]
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_the_policy_acts() -> None:
    iql = algorithms.load("iql")
    speaker = said([[9, 0, 0]], [0], [[0, 1, 2]])
    for legal, choice in ((None, 2), (jnp.array([[True, True, False]]), 1)):
        assert int(jnp.argmax(iql.scores(speaker, legal, iql.config(), iql.options()))) == choice


def test_defaults_are_the_published_ones() -> None:
    iql = algorithms.load("iql")
    assert iql.config() == (0.7, 3.0, 100.0)  # as published
    with pytest.raises(ValueError, match="'expectile' takes a number between 0 and 1; got 1"):
        learn("iql", expectile=1)


def reference(case: Case, now: Head) -> np.ndarray:
    losses, batch, views, config = np.zeros(ITEMS), case.batch, case.views, case.config
    for item in range(ITEMS):
        action = batch.action[item]
        goal = batch.reward[item] + batch.discount[item] * views.next.extra["v"][item]
        losses[item] = penalty(case.td, now.q[item, action] - goal)
        target_q = views.target_now.q[item, action]
        error = target_q - now.extra["v"][item]
        side = config.expectile if error >= 0 else 1 - config.expectile
        losses[item] += side * error**2
        # From the case's own views: the weight has no gradient.
        advantage = target_q - views.now.extra["v"][item]
        weight = min(math.exp(config.inverse_temperature * advantage), config.cap)
        among = allowed(batch.legal, item)
        losses[item] += weight * negative_log_likelihood(now.logits[item], action, among)
    return losses


@pytest.mark.parametrize("masked", [False, True], ids=["all legal", "masked"])
def test_loss_and_gradient(masked: bool) -> None:
    compare(reference, "iql", {"expectile": 0.8, "cap": 5.0}, masked)


def expectile(q: np.ndarray, level: float) -> np.ndarray:
    """Of each row of q, weighed by the behaviour."""
    v = behaviour_value(q)
    for _ in range(100):
        weight = BEHAVIOUR * np.abs(level - (q < v[:, None]))
        v = np.sum(weight * q, axis=1) / np.sum(weight, axis=1)
    return v


def test_reaches_the_fixed_point_of_expectiles() -> None:
    level, beta, cap = 0.8, 1.0, 1.5
    truth = solve(LOOP, REWARD, lambda q: expectile(q, level))
    for other in (behaviour_value, best_value):
        assert_apart(truth, solve(LOOP, REWARD, other))
    value = expectile(truth, level)
    free = np.exp(beta * (truth - value[:, None]))
    assert 0 < (free > cap).sum() < free.size
    weighted = BEHAVIOUR * np.minimum(free, cap)
    policy = weighted / weighted.sum(axis=1, keepdims=True)
    assert_apart(policy, BEHAVIOUR)

    learnt = learn("iql", expectile=level, inverse_temperature=beta, cap=cap)
    assert learnt.logits is not None
    assert learnt.head.extra is not None
    assert learnt.head.extra["v"].shape == (STATES,)
    assert_close(learnt.q, truth)
    assert_close(jax.device_get(learnt.head.extra["v"]), value)
    assert_close(softmax(learnt.logits), policy, within=TOLERANCE / 2)
