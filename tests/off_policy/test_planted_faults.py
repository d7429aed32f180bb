"""The mistakes that public code has made, planted: the closed-form check has to notice each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property

import numpy as np
import pytest
from support.ope import Process, case_of, drawn, process, record, standard_error, state_of

from rbve.data.dataset import Dataset
from rbve.off_policy import estimators
from rbve.off_policy.case import OpeCase
from rbve.off_policy.log import DecisionLog

WEIGHING = {"dr", "wdr", "pdis", "wpdis", "trajectory_is", "wis"}
Fault = Callable[[Process, OpeCase, pytest.MonkeyPatch], OpeCase]


def fresh_action(made: Process, case: OpeCase, patch: pytest.MonkeyPatch) -> OpeCase:
    """Weighs an action drawn from the policy now, not the logged one."""
    state = state_of(case.log.dataset)[case.log.rows]
    action = drawn(case.policy, np.random.default_rng(5))
    ratio = made.policy[state, action] / made.behaviour[state, action]
    patch.setattr(OpeCase, "ratio", property(lambda self: ratio))
    return case


def no_product(made: Process, case: OpeCase, patch: pytest.MonkeyPatch) -> OpeCase:
    patch.setattr(DecisionLog, "cumulative_product", lambda self, values: np.array(values))
    return case


def late_weight(made: Process, case: OpeCase, patch: pytest.MonkeyPatch) -> OpeCase:
    """w_{t−1} before r_t − Q̂(s_t, a_t), and so on: everything a step late."""
    lagging = case.log.before(case.log.cumulative_product(case.ratio))
    patch.setattr(OpeCase, "weight", property(lambda self: lagging))
    return replace(case)  # nothing computed yet


def no_discount(made: Process, case: OpeCase, patch: pytest.MonkeyPatch) -> OpeCase:
    patch.setattr(DecisionLog, "discount", property(lambda self: np.ones(len(self.action))))
    return case


def policy_as_propensities(made: Process, case: OpeCase, patch: pytest.MonkeyPatch) -> OpeCase:
    taken = case.policy[np.arange(len(case.log.action)), case.log.action]
    return replace(case, behaviour=taken)


def last_weight_but_one(made: Process, case: OpeCase, patch: pytest.MonkeyPatch) -> OpeCase:
    """Ended episodes keep the weight before their last decision in the sums of w_{t−1}."""
    right = DecisionLog.self_normalised

    def lagging(
        log: DecisionLog, weight: np.ndarray, values: np.ndarray, ended: np.ndarray
    ) -> np.ndarray:
        return right(log, weight, values, log.last(weight))

    patch.setattr(DecisionLog, "self_normalised", lagging)
    return case


def gone_after_the_end(made: Process, case: OpeCase, patch: pytest.MonkeyPatch) -> OpeCase:
    """Ended episodes leave the sums of weights, so that long ones alone make later terms."""
    right = DecisionLog.self_normalised

    def leaving(
        log: DecisionLog, weight: np.ndarray, values: np.ndarray, ended: np.ndarray
    ) -> np.ndarray:
        return right(log, weight, values, np.zeros_like(ended))

    patch.setattr(DecisionLog, "self_normalised", leaving)
    return case


def cut_is_an_end(made: Process, case: OpeCase, patch: pytest.MonkeyPatch) -> OpeCase:
    return replace(case, v_cut=None)


# Wrong Q̂ for those with values, so that right ones do not make up for a wrong weight.
FAULTS: dict[Fault, set[str]] = {
    fresh_action: WEIGHING,
    no_product: WEIGHING,
    late_weight: WEIGHING - {"wis"},  # which misses the last of several ratios: too little to tell
    no_discount: WEIGHING,
    policy_as_propensities: WEIGHING,
    last_weight_but_one: {"wdr"},
    gone_after_the_end: {"wdr", "wpdis"},
    cut_is_an_end: WEIGHING,
}


def far_off(made: Process, case: OpeCase) -> set[str]:
    """Estimators that the closed-form check refuses."""
    refused = set()
    for name in WEIGHING:
        values = estimators.load(name).estimate(case)
        if abs(float(values.mean()) - made.value) > 4 * standard_error(values):
            refused.add(name)
    return refused


@cache
def logs() -> list[tuple[Process, Dataset]]:
    """Of two processes: in one alone a wrong weight may do little harm by chance."""
    made = process(0, gamma=0.95, ends=0.15, limit=5), process(13, gamma=0.8, ends=0.25, limit=4)
    return [(each, record(each, 20_000)) for each in made]


def planted(made: Process, dataset: Dataset) -> OpeCase:
    return case_of(made, dataset, q=0.5 * made.q + 1.0)


def test_nothing_planted_nothing_refused() -> None:
    assert [far_off(made, planted(made, dataset)) for made, dataset in logs()] == [set(), set()]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_noticed(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = set()
    for made, dataset in logs():
        with monkeypatch.context() as patch:
            refused |= far_off(made, fault(made, planted(made, dataset), patch))
    assert refused == FAULTS[fault]


def certain() -> tuple[Process, OpeCase]:
    """Nothing is left to chance but the actions: exact values explain every episode."""
    made = process(2, ends=0.3)
    likeliest = made.following.argmax(axis=2)
    following = (
        np.eye(made.following.shape[2])[likeliest] * (likeliest > np.arange(4)[:, None])[:, :, None]
    )  # onwards only, so that it ends
    made = replace(made, following=following, noise=0.0)
    return made, case_of(made, record(made, 200))


@pytest.mark.parametrize("name", ["dr", "wdr"])
def test_where_all_is_certain_doubly_robust_is_exact(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """w_t instead of w_{t−1} before V̂ would bias nothing, since π / μ is 1 on average; but it
    would no longer cancel."""
    made, case = certain()
    assert case.log.lengths.max() > 1
    first = made.v[state_of(case.log.dataset)[case.log.dataset.offsets[:-1]]]
    found = estimators.load(name).estimate(case)
    np.testing.assert_allclose(found, first, rtol=1e-5)  # rewards are float32
    monkeypatch.setattr(DecisionLog, "before", lambda self, weight: weight)
    assert np.abs(estimators.load(name).estimate(case) - first).max() > 0.1


def test_what_is_patched_is_what_is_computed() -> None:
    """A cached property that a case had read before would hide the fault."""
    assert isinstance(vars(OpeCase)["ratio"], cached_property)
    assert isinstance(vars(DecisionLog)["discount"], cached_property)
    case = planted(*logs()[0])
    assert {"ratio", "weight"}.isdisjoint(vars(case))
