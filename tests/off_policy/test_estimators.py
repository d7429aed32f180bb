"""Every estimator against exact values: unbiased, or consistent, as its theory says.

Tolerances are four of its own standard errors. A new file in rbve/off_policy/estimators is
covered by the tests over ESTIMATORS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from support.ope import Process, case_of, one_step, process, record, standard_error, state_of

from rbve.off_policy import estimators
from rbve.off_policy.case import OpeCase
from rbve.off_policy.estimators._slope import choose
from rbve.off_policy.intervals import student
from rbve.off_policy.log import DecisionLog

ESTIMATORS = estimators.names()
EPISODES = 20_000
PROCESSES: dict[str, Callable[[], Process]] = {
    "ends": lambda: process(0),
    "cut": lambda: process(1, ends=0.15, limit=4),
    "gamma 1": lambda: process(2, gamma=1.0, ends=0.4, limit=6),
    "greedy": lambda: process(3, ends=0.6, limit=5, greedy=True),
    "one step": lambda: one_step(9),
}


@cache
def logged(name: str) -> tuple[Process, OpeCase]:
    made = PROCESSES[name]()
    return made, case_of(made, record(made, EPISODES))


def pairs(chosen: list[str] = ESTIMATORS) -> list[tuple[str, str]]:
    return [
        (name, kind)
        for name in chosen
        for kind in PROCESSES
        if estimators.load(name).ESTIMATOR.suits(logged(kind)[1].log)
    ]


def influence(name: str, case: OpeCase) -> np.ndarray:
    return estimators.load(name).estimate(case)


def errors_off(name: str, case: OpeCase, truth: float) -> float:
    """How many of its own standard errors an estimate is away from the truth."""
    values = influence(name, case)
    return abs(float(values.mean()) - truth) / standard_error(values)


def wrong_values(case: OpeCase) -> OpeCase:
    """Another Q̂; V̂ where episodes were cut stays exact, since nobody has weights beyond."""
    assert case.q is not None
    return replace(case, q=3.0 + 0.5 * case.q + np.arange(case.q.shape[1]))


def test_the_processes_have_what_they_are_for() -> None:
    for name in PROCESSES:
        made, case = logged(name)
        log = case.log
        assert not made.legal.all()
        assert log.one_step == (name == "one step")
        assert log.cut.any() == (name in ("cut", "gamma 1", "greedy"))
        assert (case.weight == 0).any() == (name == "greedy")
        behaviour = float(made.start @ (made.behaviour * made.q_of(made.behaviour)).sum(axis=1))
        assert abs(made.value - behaviour) > 10 * standard_error(case.returns), name


def test_exact_values_by_walking() -> None:
    """The linear system's, by drawing episodes of the policy itself."""
    made = process(1, ends=0.4)
    walked = record(replace(made, behaviour=made.policy), 20_000, seed=1)
    returns = DecisionLog.of(walked, made.gamma)
    values = returns.sum(returns.discount * returns.reward)
    assert abs(values.mean() - made.value) < 4 * standard_error(values)


@pytest.mark.parametrize(("name", "kind"), pairs())
def test_right_values_and_propensities_give_the_exact_value(name: str, kind: str) -> None:
    made, case = logged(kind)
    values = influence(name, case)
    assert values.shape == (case.log.episodes,)
    assert np.isfinite(values).all()
    assert errors_off(name, case, made.value) < 4
    assert standard_error(values) < 0.1  # so that four of them tell something


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_an_estimator_says_it_needs_is_what_it_reads(name: str) -> None:
    own = estimators.load(name).ESTIMATOR
    _, case = logged("one step" if own.steps == "one" else "cut")
    given = influence(name, case)
    without = replace(case, q=None)
    if own.values:
        with pytest.raises(ValueError, match="needs fitted values"):
            influence(name, without)
    else:
        np.testing.assert_array_equal(influence(name, without), given)
    other = influence(name, replace(case, behaviour=case.behaviour * 0.5 + 0.1))
    assert np.array_equal(other, given) != own.weights
    assert own.weights or own.values
    assert own.steps in ("any", "one", "several")
    assert len(estimators.summary(name)) > 10


@pytest.mark.parametrize(("name", "kind"), pairs(["dr", "wdr"]))
def test_doubly_robust_with_wrong_values(name: str, kind: str) -> None:
    made, case = logged(kind)
    wrong = wrong_values(case)
    assert errors_off("fqe", wrong, made.value) > 20
    assert errors_off(name, wrong, made.value) < 4
    ratio = standard_error(influence(name, wrong)) / standard_error(influence(name, case))
    assert ratio > 1.05  # right values are worth something


@pytest.mark.parametrize(("name", "kind"), pairs(["dr", "wdr"]))
def test_doubly_robust_with_wrong_propensities(name: str, kind: str) -> None:
    made, case = logged(kind)
    rng = np.random.default_rng(0)
    table = rng.uniform(0.3, 1.0, made.behaviour.shape)
    state = state_of(case.log.dataset)[case.log.rows]
    wrong = replace(case, behaviour=table[state, case.log.action])
    assert errors_off("trajectory_is", wrong, made.value) > 10
    assert errors_off(name, wrong, made.value) < 4


def test_the_direct_method_is_the_value_of_first_states() -> None:
    for kind in PROCESSES:
        made, case = logged(kind)
        first = state_of(case.log.dataset)[case.log.dataset.offsets[:-1]]
        np.testing.assert_allclose(influence("fqe", case), made.v[first])


@pytest.mark.parametrize("name", ["switch_dr", "dros"])
def test_slope_stays_near_the_unbiased_one(name: str) -> None:
    """With wrong values small thresholds are biased; SLOPE bounds what it may choose by widths."""
    made, case = logged("one step")
    wrong = wrong_values(case)
    values, unbiased = influence(name, wrong), influence("dr", wrong)
    low, high = student(values)
    widest = student(unbiased)
    reach = (high - low) / 2 + (6**0.5 - 1) * (widest[1] - widest[0]) / 2
    assert abs(values.mean() - unbiased.mean()) <= reach
    assert abs(values.mean() - made.value) < 4 * standard_error(unbiased) + reach
    assert abs(wrong.v.mean() - made.value) > 10 * (4 * standard_error(unbiased) + reach)


def test_slope_by_hand() -> None:
    """Of three candidates the narrowest is off, and the second is narrower than the first."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=1000)
    noise = (noise - noise.mean()) / noise.std()
    candidates = {0.0: 5.0 + 3 * noise, 1.0: 5.1 + noise, 2.0: 6.5 + 0.1 * noise}
    chosen = choose([2.0, 0.0, 1.0], lambda threshold: candidates[threshold])
    np.testing.assert_array_equal(chosen, candidates[1.0])
    near = candidates | {2.0: 5.1 + 0.1 * noise}
    chosen = choose([2.0, 0.0, 1.0], lambda threshold: near[threshold])
    np.testing.assert_array_equal(chosen, near[2.0])


def test_several_steps_are_not_one() -> None:
    suited = {kind: estimators.suited(logged(kind)[1].log) for kind in ("cut", "one step")}
    assert {"switch_dr", "dros"} <= set(suited["one step"]) - set(suited["cut"])
    assert {"pdis", "wpdis"} <= set(suited["cut"]) - set(suited["one step"])


def test_one_step_forms_by_hand() -> None:
    """IPW, SNIPW, DR, SNDR and DM of four rows."""
    made, case = logged("one step")
    dataset = case.log.dataset.select(np.arange(4), "four")
    small = case_of(made, dataset)
    state = state_of(dataset)[small.log.rows]
    r, a = dataset.reward[small.log.rows].astype(float), small.log.action
    w = made.policy[state, a] / made.behaviour[state, a]
    v, q = made.v[state], made.q[state, a]
    by_hand = {
        "trajectory_is": (w * r).mean(),
        "wis": (w * r).sum() / w.sum(),
        "dr": (v + w * (r - q)).mean(),
        "wdr": v.mean() + (w * (r - q)).sum() / w.sum(),
        "fqe": v.mean(),
    }
    found = {name: influence(name, small).mean() for name in by_hand}
    assert found == pytest.approx(by_hand)


def test_two_steps_by_hand() -> None:
    """One episode of two decisions, cut: every plausible mistake gives another number."""
    made, case = logged("cut")
    long = np.flatnonzero((case.log.lengths == 4) & case.log.cut)[:1]
    dataset = case.log.dataset.select(long, "one")
    small = case_of(made, dataset)
    state, a = state_of(dataset), small.log.action
    r = dataset.reward[:-1].astype(float)
    rho = made.policy[state[:-1], a] / made.behaviour[state[:-1], a]
    beyond = made.gamma * made.v[state[-1]]
    g, w = 0.9 ** np.arange(4), np.cumprod(rho)
    r[-1] += beyond
    before = np.append(1.0, w[:-1])
    residual = w * (r - made.q[state[:-1], a]) + before * made.v[state[:-1]]
    by_hand = {
        "trajectory_is": w[-1] * (g * r).sum(),
        "pdis": (g * w * r).sum(),
        "wis": (g * r).sum(),
        "dr": (g * residual).sum(),
    }
    found = {name: influence(name, small).mean() for name in by_hand}
    assert found == pytest.approx(by_hand)


def test_no_overlap_is_no_number() -> None:
    _, case = logged("cut")
    nowhere = replace(case, policy=np.zeros_like(case.policy))
    assert np.isnan(influence("wis", nowhere)).all()
