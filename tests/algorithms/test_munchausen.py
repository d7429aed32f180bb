"""Munchausen DQN: by hand, against a float64 reference, and to its soft fixed point."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from support.losses import batch, head, values
from support.reference import ITEMS, Case, allowed, compare, penalty
from support.tabular import (
    ACTIONS,
    GAMMA,
    LOOP,
    REWARD,
    STATES,
    assert_apart,
    assert_close,
    best_value,
    learn,
    solve,
)

from rbve import algorithms, ops
from rbve.types import Head, Views

LOG2, LOG5 = math.log(2), math.log(5)

# τ = ½. At s, by the target network: π = 1/8, 2/8, 5/8, so that τ log π of actions 1 and 0 is
# −.6931472 and −1.0397208, which l0 = −1 cuts. At s': τ log Σ exp(Q/τ) = ½ log 8; row 1 terminates.
VIEWS = Views(
    now=head([[9, 1, 9], [2, 9, 9]]),
    next=head([[5, 6, 7]] * 2),
    target=head([[LOG2 / 2, LOG2 / 2, LOG2]] * 2),
    target_at_s=Partial(lambda head: head, head([[0, LOG2 / 2, LOG5 / 2]] * 2)),
)
BATCH = batch([1, 0], discount=[0.5, 0])
SETTINGS = {"temperature": 0.5, "alpha": 0.5}


def test_the_log_policy_is_added_to_the_reward_and_the_target_is_soft() -> None:
    # The goal of row 0 is .5 − .3465736 + .5·1.0397208 = .6732868; it is 1.0198604 without bonus,
    # .5 with max Q for the soft value and .4133566 with Σ π Q, without entropy. Row 1:
    # (2 − (.5 − .5))², which is 4.08 if the bonus is not cut and 2.25 without it.
    loss = values("munchausen", VIEWS, BATCH, **SETTINGS)
    np.testing.assert_allclose(loss, [(1 - 0.6732868) ** 2, 4], rtol=1e-5)


def test_the_bonus_is_cut() -> None:
    loss = values("munchausen", VIEWS, BATCH, clip=-0.25, **SETTINGS)
    np.testing.assert_allclose(loss, [(1 - 0.8948604) ** 2, 1.625**2], rtol=1e-5)


def test_illegal_actions_have_no_share_in_the_policy() -> None:
    masked = batch(
        [1, 0],
        discount=[0.5, 0],
        legal=[[True, True, False], [True, False, True]],
        next_legal=[[True, False, True], [False] * 3],
    )
    # Row 0: π = 2/3, at s' ½ log 6. Row 1: π = 1/6.
    goals = [0.5 + 0.25 * math.log(2 / 3) + 0.25 * math.log(6), 0.5 + 0.25 * math.log(1 / 6)]
    loss = values("munchausen", VIEWS, masked, **SETTINGS)
    np.testing.assert_allclose(loss, [(1 - goals[0]) ** 2, (2 - goals[1]) ** 2], rtol=1e-5)


def test_policies_are_those_of_values_not_of_their_rescaled_form() -> None:
    heads = [each._replace(q=ops.rescale(each.q)) for each in (*VIEWS[:3], VIEWS.target_now)]
    views = Views(*heads[:3], Partial(lambda head: head, heads[3]))
    loss = values("munchausen", views, BATCH, ops.TD(rescaled=True), **SETTINGS)
    h = lambda x: float(ops.rescale(jnp.float32(x)))  # noqa: E731
    np.testing.assert_allclose(loss, [(h(1) - h(0.6732868)) ** 2, h(2) ** 2], rtol=1e-4)


def test_defaults_are_the_published_ones() -> None:
    munchausen = algorithms.load("munchausen")
    assert munchausen.config() == (0.03, 0.9, -1.0)
    assert munchausen.scores is algorithms.greedy
    with pytest.raises(ValueError, match="'temperature' takes a positive number; got 0"):
        learn("munchausen", temperature=0)


def log_policy(q: Any, among: list[int], temperature: float) -> dict[int, float]:
    total = sum(math.exp(q[a] / temperature) for a in among)
    return {a: q[a] / temperature - math.log(total) for a in among}


def reference(case: Case, now: Head) -> np.ndarray:
    losses, batch, views = np.zeros(ITEMS), case.batch, case.views
    temperature, alpha, clip = case.config
    for item in range(ITEMS):
        action = batch.action[item]
        here = log_policy(views.target_now.q[item], allowed(batch.legal, item), temperature)
        bonus = min(max(temperature * here[action], clip), 0.0)
        after = allowed(batch.next_legal, item)
        later = log_policy(views.target.q[item], after, temperature) if after else {}
        soft = sum(
            math.exp(log) * (views.target.q[item, a] - temperature * log)
            for a, log in later.items()
        )
        goal = batch.reward[item] + alpha * bonus + batch.discount[item] * soft
        losses[item] = penalty(case.td, now.q[item, action] - goal)
    return losses


@pytest.mark.parametrize("masked", [False, True], ids=["all legal", "masked"])
@pytest.mark.parametrize(
    ("settings", "td"), [({}, "square"), ({"temperature": 0.7, "clip": -0.6}, "huber")]
)
def test_loss_and_gradient(settings: dict[str, Any], td: str, masked: bool) -> None:
    compare(reference, "munchausen", settings, masked, td)


def test_reaches_its_soft_fixed_point() -> None:
    temperature, alpha, clip = 0.2, 0.6, -0.5
    q = np.zeros((STATES, ACTIONS))
    for _ in range(2000):
        soft = temperature * np.log(np.exp(q / temperature).sum(axis=1))
        bonus = q - soft[:, None]  # τ log π
        goal = (REWARD + GAMMA * np.append(soft, 0)[LOOP]).mean(axis=-1)
        after = goal + alpha * np.clip(bonus, clip, 0)
        moved = np.abs(after - q).max()
        q = after
    assert moved < 1e-9
    assert 0 < (bonus < clip).sum() < bonus.size
    assert_apart(q, solve(LOOP, REWARD, best_value))
    softened = solve(
        LOOP, REWARD, lambda q: temperature * np.log(np.exp(q / temperature).sum(axis=1))
    )
    assert_apart(q, softened)  # without the bonus
    assert_close(learn("munchausen", temperature=temperature, alpha=alpha, clip=clip).q, q)
