"""Bounds under hidden confounding: exact against every corner, and right where a confounder is
known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.ope import case_of, one_step, process, record

from rbve.off_policy import estimators
from rbve.off_policy.case import OpeCase
from rbve.off_policy.log import DecisionLog
from rbve.off_policy.sensitivity import breakdown, sensitivity

ODDS = (1.0, 1.1, 1.5, 2.0, 5.0, 20.0)


def one_step_case(episodes: int) -> OpeCase:
    made = one_step(9)
    return case_of(made, record(made, episodes))


def short_case(episodes: int) -> OpeCase:
    made = process(1, ends=0.4, limit=3)
    return case_of(made, record(made, episodes))


def corners(case: OpeCase, odds: float) -> tuple[float, float]:
    """Of all weights at one of their two extremes."""
    least, most = [], []
    for low, high in zip(case.log.offsets[:-1], case.log.offsets[1:], strict=True):
        pi = case.policy[np.arange(low, high), case.log.action[low:high]]
        spare = 1 / case.behaviour[low:high] - 1
        least.append(np.prod(pi * (1 + spare / odds)))
        most.append(np.prod(pi * (1 + spare * odds)))
    values = []
    for weight in itertools.product(*zip(least, most, strict=True)):
        w = np.array(weight)
        values.append((w * case.returns).sum() / w.sum())
    return min(values), max(values)


@pytest.mark.parametrize("make", [one_step_case, short_case])
@pytest.mark.parametrize("odds", [1.0, 1.3, 3.0])
def test_bounds_are_the_best_of_all_corners(make: Callable[[int], OpeCase], odds: float) -> None:
    case = make(8)
    [(given, low, high)] = sensitivity(case, [odds])
    assert given == odds
    assert (low, high) == pytest.approx(corners(case, odds), rel=1e-9)


@pytest.mark.parametrize("make", [one_step_case, short_case])
def test_without_confounding_the_self_normalised_estimate(make: Callable[[int], OpeCase]) -> None:
    case = make(300)
    estimate = estimators.load("wis").estimate(case).mean()
    assert sensitivity(case, [1.0])[0] == pytest.approx((1.0, estimate, estimate), rel=1e-9)


@pytest.mark.parametrize("make", [one_step_case, short_case])
def test_bounds_widen_and_stay_within_the_returns(make: Callable[[int], OpeCase]) -> None:
    case = make(300)
    curve = sensitivity(case, ODDS)
    lows, highs = [each.low for each in curve], [each.high for each in curve]
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)
    assert lows[-1] < lows[0] < highs[-1]
    assert case.returns.min() <= lows[-1]
    assert highs[-1] <= case.returns.max()


def test_certain_actions_cannot_be_confounded() -> None:
    case = one_step_case(50)
    sure = replace(case, behaviour=np.ones(50), policy=np.ones_like(case.policy))
    for _, low, high in sensitivity(sure, ODDS):
        assert (low, high) == pytest.approx((case.returns.mean(),) * 2)


def test_a_known_confounder_lies_within_the_bounds() -> None:
    """A hidden coin makes an action likelier and better; the log shows one propensity."""
    rng, count = np.random.default_rng(0), 20_000
    case = one_step_case(count)
    coin = rng.random(count) < 0.5
    chance = np.where(coin, 0.8, 0.2)  # of action 1; the odds of 1 change by 4
    action = (rng.random(count) < chance).astype(np.int32)
    dataset = case.log.dataset
    columns = {"action": dataset.action.copy(), "reward": dataset.reward.copy()}
    columns["action"][case.log.rows] = action
    columns["reward"][case.log.rows] = np.where(action == 1, coin, 0.0)
    log = DecisionLog.of(replace(dataset, **columns), 1.0)
    policy = np.zeros((count, 3))
    policy[:, 1] = 1.0  # whose value is .5
    confounded = OpeCase(log, policy, np.full(count, 0.5))
    (_, one, _), (_, low, high) = sensitivity(confounded, [1.0, 4.0])
    assert one == pytest.approx(0.8, abs=0.02)
    assert low == pytest.approx(0.5, abs=0.02)  # the bound is attained
    assert low <= 0.5 + 0.02 < high
    assert breakdown(confounded, 0.5) == pytest.approx(4.0, rel=0.1)


def test_breakdown_is_where_the_bounds_meet_the_behaviour() -> None:
    case = one_step_case(300)
    estimate = sensitivity(case, [1.0])[0].low
    for value in (estimate - 0.2, estimate + 0.2):
        odds = breakdown(case, value)
        assert 1 < odds < 20
        (_, low, high), (_, under, over) = sensitivity(case, [odds, odds * 0.999])
        assert low <= value <= high
        assert not under <= value <= over
    assert breakdown(case, estimate) == pytest.approx(1.0, abs=1e-5)
    assert breakdown(case, case.returns.max() + 1) == math.inf


@pytest.mark.parametrize("odds", [0.9, 0.0, -1.0, float("nan"), float("inf")])
def test_factors_below_one(odds: float) -> None:
    with pytest.raises(ValueError, match="a factor of 1 or more; got"):
        sensitivity(one_step_case(10), [odds])


def test_long_episodes_are_refused() -> None:
    made = process(0, ends=0.1, limit=6)
    case = case_of(made, record(made, 50))
    with pytest.raises(ValueError, match=r"up to 5 decisions and this log has 6") as caught:
        sensitivity(case, [2.0])
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="up to 5 decisions"):
        breakdown(case, 0.0)


def test_no_overlap_is_refused() -> None:
    case = one_step_case(10)
    with pytest.raises(ValueError, match="no episode of the log is one that the policy could"):
        sensitivity(replace(case, policy=np.zeros_like(case.policy)), [2.0])


def test_policies_that_skip_most_episodes() -> None:
    """Weights of 0 stay 0, at both ends of the order too."""
    case = one_step_case(12)
    policy = case.policy.copy()
    policy[np.argsort(case.returns)[[0, 1, -1]]] = 0.0
    skipped = replace(case, policy=policy)
    [(_, low, high)] = sensitivity(skipped, [3.0])
    assert (low, high) == pytest.approx(corners(skipped, 3.0), rel=1e-9)
