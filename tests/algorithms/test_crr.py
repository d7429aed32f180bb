"""Critic-regularised regression: by hand, against a float64 reference, and to its fixed point."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
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
    ACTIONS,
    BEHAVIOUR,
    LOOP,
    REWARD,
    STATES,
    TOLERANCE,
    assert_apart,
    assert_close,
    best_value,
    learn,
    softmax,
    solve,
)

from rbve import algorithms, ops
from rbve.types import Head, Views

LOG2, LOG5 = math.log(2), math.log(5)

# At s: π = 1/8, 2/8, 5/8 and Σ π Q = 4, so that the advantages of actions 1 and 2 are −1 and 1
# (0 and 2 over the mean of Q); β = 1 / log 2 gives weights ½ and 2. At s' by the target network:
# π = 5/8, 1/8, 2/8 and Σ π Q = 1.75; row 1 terminates.
VIEWS = Views(
    now=head([[1, 3, 5]] * 2, logits=[[0, LOG2, LOG5]] * 2),
    next=head([[9, 8, 7]] * 2, logits=[[0, LOG5, LOG2]] * 2),
    target=head([[2, 6, -1]] * 2, logits=[[LOG5, 0, LOG2]] * 2),
)
BATCH = batch([1, 2], discount=[0.5, 0])
BETA = 1 / LOG2


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # (3 − (.5 + .5·1.75))² + ½·log 4, where max Q gives .25 and the online policy .390625 for
        # 2.640625; (5 − .5)² + 2·log 8/5
        ({}, [2.640625 + 0.6931472, 20.25 + 0.9400073]),
        ({"cap": 1.5}, [2.640625 + 0.6931472, 20.25 + 0.7050054]),
        ({"filter": "binary"}, [2.640625, 20.25 + 0.4700036]),
    ],
)
def test_both_filters(settings: dict[str, Any], expected: list[float]) -> None:
    loss = values("crr", VIEWS, BATCH, **{"beta": BETA, **settings})
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_illegal_actions_have_no_share_in_the_policy() -> None:
    masked = batch(
        [1, 2],
        discount=[0.5, 0],
        legal=[[True, True, False], [False, True, True]],
        next_legal=[[False, True, True], [False] * 3],
    )
    # Row 0: π = 1/3, 2/3, Σ π Q = 7/3, A = 2/3; at s' π = 1/3, 2/3 of 6, −1: 4/3.
    # Row 1: π = 2/7, 5/7, Σ π Q = 31/7, A = 4/7.
    expected = [
        (3 - 0.5 - 0.5 * 4 / 3) ** 2 + 2 ** (2 / 3) * math.log(3 / 2),
        20.25 + 2 ** (4 / 7) * math.log(7 / 5),
    ]
    np.testing.assert_allclose(values("crr", VIEWS, masked, beta=BETA), expected, rtol=1e-6)


def test_the_binary_filter_is_strict() -> None:
    level = VIEWS._replace(now=VIEWS.now._replace(q=jnp.full((2, 3), 3.0)))
    loss = values("crr", level, BATCH, filter="binary")
    np.testing.assert_allclose(loss, [2.640625, 6.25], rtol=1e-6)


def test_expectations_are_those_of_values_not_of_their_rescaled_form() -> None:
    views = Views(*(each._replace(q=ops.rescale(each.q)) for each in VIEWS[:3]))
    loss = values("crr", views, BATCH, ops.TD(rescaled=True), beta=BETA)
    h = lambda x: float(ops.rescale(jnp.float32(x)))  # noqa: E731
    expected = [(h(3) - h(1.375)) ** 2 + 0.6931472, (h(5) - h(0.5)) ** 2 + 0.9400073]
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_the_policy_acts() -> None:
    crr = algorithms.load("crr")
    assert crr.config() == (1.0, 20.0)  # as published
    speaker = head([[9, 0, 0]], logits=[[0, 1, 2]])
    for legal, choice in ((None, 2), (jnp.array([[True, True, False]]), 1)):
        assert int(jnp.argmax(crr.scores(speaker, legal, crr.config(), crr.options()))) == choice


def policy_value(q: Any, logits: Any, among: list[int]) -> float:
    return sum(math.exp(-negative_log_likelihood(logits, a, among)) * q[a] for a in among)


def reference(case: Case, now: Head) -> np.ndarray:
    losses, batch, config = np.zeros(ITEMS), case.batch, case.config
    frozen, target = case.views.now, case.views.target  # the weight has no gradient
    for item in range(ITEMS):
        action, later = batch.action[item], allowed(batch.next_legal, item)
        next_value = policy_value(target.q[item], target.logits[item], later) if later else 0.0
        goal = batch.reward[item] + batch.discount[item] * next_value
        losses[item] = penalty(case.td, now.q[item, action] - goal)
        among = allowed(batch.legal, item)
        advantage = frozen.q[item, action] - policy_value(
            frozen.q[item], frozen.logits[item], among
        )
        weight = float(advantage > 0)
        if case.options.filter == "exponential":
            weight = min(math.exp(advantage / config.beta), config.cap)
        losses[item] += weight * negative_log_likelihood(now.logits[item], action, among)
    return losses


@pytest.mark.parametrize("masked", [False, True], ids=["all legal", "masked"])
@pytest.mark.parametrize(
    ("settings", "td"),
    [({"beta": 0.5, "cap": 2.0}, "square"), ({"filter": "binary"}, "huber")],
)
def test_loss_and_gradient(settings: dict[str, Any], td: str, masked: bool) -> None:
    compare(reference, "crr", settings, masked, td)


def test_reaches_the_fixed_point_of_critic_and_policy() -> None:
    beta, cap = 1.0, 1.5
    policy, q, free = BEHAVIOUR, np.zeros((STATES, ACTIONS)), np.ones((STATES, ACTIONS))
    for _ in range(80):
        mixed = policy
        q = solve(LOOP, REWARD, lambda q: np.sum(mixed * q, axis=1))  # noqa: B023
        free = np.exp((q - np.sum(policy * q, axis=1, keepdims=True)) / beta)
        weighted = BEHAVIOUR * np.minimum(free, cap)
        policy = (policy + weighted / weighted.sum(axis=1, keepdims=True)) / 2
    assert_close(weighted / weighted.sum(axis=1, keepdims=True), policy, within=1e-9)
    assert 0 < (free > cap).sum() < free.size
    assert_apart(q, solve(LOOP, REWARD, best_value))
    assert_apart(policy, BEHAVIOUR)

    learnt = learn("crr", beta=beta, cap=cap)
    assert learnt.logits is not None
    assert_close(learnt.q, q)
    assert_close(softmax(learnt.logits), policy, within=TOLERANCE / 2)
