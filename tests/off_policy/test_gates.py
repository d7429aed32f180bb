"""Every gate fails on a planted case, says why and what would help, and passes on a clean one."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from support.ope import Process, behaviour_on, case_of, one_step, process, record, state_of

from rbve.off_policy import estimators, gates
from rbve.off_policy.case import OpeCase
from rbve.off_policy.gates import Gate


@pytest.fixture(scope="module")
def clean() -> tuple[Process, OpeCase]:
    made = process(0, limit=5)
    return made, case_of(made, record(made, 4000))


def gate(found: list[Gate], name: str) -> Gate:
    return next(each for each in found if each.name == name)


def with_weights(weight: np.ndarray) -> OpeCase:
    """A one-step log whose weights are given."""
    made = one_step(1)
    case = case_of(made, record(made, len(weight)))
    taken = case.policy[np.arange(len(weight)), case.log.action]
    return replace(case, behaviour=taken / weight)


def test_a_clean_case_passes_every_gate(clean: tuple[Process, OpeCase]) -> None:
    made, case = clean
    behaviour = behaviour_on(case, made, error=0.01)
    values = {name: estimators.load(name).estimate(case) for name in ("dr", "wdr", "wis", "pdis")}
    found = [
        *gates.weight_gates(case),
        gates.support_gate(case, behaviour, case.log.dataset.actions),
        gates.calibration_gate(behaviour),
        gates.fit_gate(case),
        gates.agreement_gate(case, values),
    ]
    assert [each.name for each in found if not each.passed] == []
    assert len({each.name for each in found}) == 8
    for each in found:
        assert each.value <= each.limit or each.name == "effective episodes"
        assert str(each) == each.said


def test_few_effective_episodes() -> None:
    """A few of many episodes carry the weight, none more than a tenth."""
    weight = np.full(2000, 1e-6)
    weight[:20] = 100.0
    found = gates.weight_gates(with_weights(weight))
    failed = gate(found, "effective episodes")
    assert not failed.passed
    assert failed.value == pytest.approx(20, rel=1e-3)
    assert gate(found, "largest weight").passed
    assert "worth 20 of 2,000 episodes (at least 50)" in str(failed)
    assert "a policy nearer to the log" in str(failed)


def test_effective_episodes_by_hand() -> None:
    assert gates.effective_episodes(np.array([1.0, 1.0, 2.0])) == pytest.approx(16 / 6)
    assert gates.effective_episodes(np.zeros(3)) == 0.0


def test_one_dominating_weight() -> None:
    weight = np.ones(2000)
    weight[0] = 400.0
    found = gates.weight_gates(with_weights(weight))
    failed = gate(found, "largest weight")
    assert not failed.passed
    assert failed.value == pytest.approx(400 / 2399)
    assert "one episode has 16.7% of all weight (at most 10%)" in str(failed)


def test_heavy_tail() -> None:
    """Weights whose mean exists and whose variance does not."""
    rng = np.random.default_rng(0)
    weight = rng.pareto(1.05, 5000) + 1.0
    failed = gate(gates.weight_gates(with_weights(weight / weight.mean())), "weight tail")
    assert not failed.passed
    assert failed.value > 0.7
    assert "k̂" in str(failed)


def test_wrong_propensities_with_many_effective_episodes(clean: tuple[Process, OpeCase]) -> None:
    """What a healthy effective sample size does not see."""
    _, case = clean
    wrong = replace(case, behaviour=np.minimum(case.behaviour * 1.3, 1.0))
    found = gates.weight_gates(wrong)
    assert gate(found, "effective episodes").value > 500
    failed = [each.name for each in found if not each.passed]
    assert failed == ["mean weight"]
    assert "propensities do not fit the log" in str(gate(found, "mean weight"))


def test_returns_of_one(clean: tuple[Process, OpeCase]) -> None:
    _, case = clean
    assert case.log.cut.any()
    assert case.log.gamma < 1
    known = case.with_returns_of_one()
    np.testing.assert_allclose(known.returns, 1.0)
    np.testing.assert_array_equal(known.weight, case.weight)


@pytest.mark.parametrize("name", ["trajectory_is", "pdis", "wpdis"])
def test_a_known_value_that_is_missed(name: str, clean: tuple[Process, OpeCase]) -> None:
    """The large weights of one action are missing by chance: self-normalised weights of whole
    episodes make up for it, the others show it."""
    _, case = clean
    estimate = estimators.load(name).estimate
    found = gates.known_value_gate(case, estimate, name)
    assert found.passed
    assert found.name == f"known value of {name}"
    assert f"{name} makes 1.0" in str(found) or f"{name} makes 0.9" in str(found)
    last = np.repeat(case.log.last(case.weight), case.log.lengths)
    lacking = replace(case, policy=np.where((last > np.quantile(last, 0.98))[:, None], 0.0,
                                            case.policy))  # fmt: skip
    missed = gates.known_value_gate(lacking, estimate, name)
    assert not missed.passed
    assert "of a value that is 1; go by DR or WIS" in str(missed)
    assert estimators.load("wis").estimate(lacking.with_returns_of_one()).mean() == pytest.approx(1)


def test_target_policy_as_propensities_is_told_by_disagreement(
    clean: tuple[Process, OpeCase],
) -> None:
    """Weights of 1 pass every gate of weights; what they estimate differs from a right fit."""
    made, case = clean
    taken = case.policy[np.arange(len(case.log.action)), case.log.action]
    wrong = replace(case, behaviour=taken)
    assert all(each.passed for each in gates.weight_gates(wrong))
    values = {"fitted": estimators.load("fqe").estimate(case)}
    values["weighed"] = estimators.load("wis").estimate(wrong)
    truth = values["weighed"].mean() - made.value
    found = gates.agreement_gate(case, values)
    assert found.value > 0.5 * abs(truth) / case.returns.std()


def test_unsupported_action_is_named(clean: tuple[Process, OpeCase]) -> None:
    made, case = clean
    behaviour = behaviour_on(case, made)
    state = state_of(case.log.dataset)[case.log.rows]
    rare = behaviour.every.copy()
    rare[state == 0] = [0.995, 0.0025, 0.0025]
    policy = case.policy.copy()
    policy[state == 0] = [0.1, 0.2, 0.7]
    names = ("wait", "treat", "operate")
    found = gates.support_gate(replace(case, policy=policy), replace(behaviour, every=rare), names)
    assert not found.passed
    assert found.value == pytest.approx(0.9 * (state == 0).mean())
    assert "collect more decisions with action 'operate'" in str(found)


def test_of_many_actions_the_behaviour_s_own_are_supported() -> None:
    """With 80 actions most are taken in under 1% of states, by the behaviour itself too."""
    made = one_step(1)
    case = case_of(made, record(made, 500))
    rng = np.random.default_rng(4)
    every = np.exp(0.5 * rng.normal(size=(500, 80)))
    every /= every.sum(axis=1, keepdims=True)
    assert (every * (every < 0.01)).sum() / 500 > 0.2
    case = replace(case, log=replace(case.log, dataset=replace(case.log.dataset, legal=None)))
    behaviour = replace(behaviour_on(case, made), every=every)
    names = [str(action) for action in range(80)]
    own = gates.support_gate(replace(case, policy=every), behaviour, names)
    assert own.passed
    assert "under 0.25% of such states" in str(own)
    rarest = np.zeros_like(every)
    rarest[:, 7] = 1.0
    behaviour.every[:, 7] = 0.0024
    found = gates.support_gate(replace(case, policy=rarest), behaviour, names)
    assert not found.passed
    assert "collect more decisions with action '7'" in str(found)


def clicks(count: int) -> OpeCase:
    """2,000 episodes of one step with weights of 1, of which some bring a click."""
    made = one_step(1)
    data = record(made, 2000)
    data.reward[:] = 0.0
    data.reward[data.offsets[:count]] = 1.0
    case = case_of(made, data)
    return replace(case, policy=made.behaviour[state_of(case.log.dataset)[case.log.rows]])


def test_rare_returns_need_some_that_differ() -> None:
    """Healthy weights and not one click: the interval has no width, and nothing is known."""
    none, few, enough = clicks(0), clicks(4), clicks(5)
    influence = estimators.load("trajectory_is").estimate(none)
    assert influence.std() == 0
    assert gate(gates.weight_gates(none), "effective episodes").value == pytest.approx(2000)
    assert not gates.events_gate(none).passed
    failed = gates.events_gate(few)
    assert not failed.passed
    assert "worth 4 episodes that return anything but 0 (at least 5)" in str(failed)
    assert "needs about 2,500 episodes" in str(failed)  # 4 in 2,000 are 5 in 2,500
    assert "needs more episodes" in str(gates.events_gate(none))
    assert gates.events_gate(enough).passed


def test_events_count_by_their_weights() -> None:
    case = clicks(50)
    weight = np.ones(2000)
    weight[3:50] = 1e-6  # the policy hardly ever does what led to the other clicks
    taken = case.policy[np.arange(2000), case.log.action]
    found = gates.events_gate(replace(case, behaviour=taken / weight))
    assert found.value == pytest.approx(3, rel=1e-3)
    assert not found.passed


def test_miscalibrated_propensities(clean: tuple[Process, OpeCase]) -> None:
    made, case = clean
    found = gates.calibration_gate(behaviour_on(case, made, error=0.12))
    assert not found.passed
    assert "off by 12.0% on average (at most 5%)" in str(found)
    assert "log the probabilities" in str(found)


def test_biased_fit(clean: tuple[Process, OpeCase]) -> None:
    """Σ_t γ^t (r + γ V̂(s') − Q̂) is 0 on average for right values, of cut episodes too."""
    _, case = clean
    assert case.log.cut.any()
    assert gates.fit_gate(case).passed
    assert case.q is not None
    assert case.v_cut is not None
    found = gates.fit_gate(replace(case, q=case.q + 1.0, v_cut=case.v_cut + 1.0))
    assert not found.passed
    shift = (1 - case.log.gamma) * case.log.sum(case.log.discount)
    ended = case.log.gamma**case.log.lengths * ~case.log.cut
    expected = float((shift + ended).mean()) / float(case.returns.std())
    assert found.value == pytest.approx(expected, rel=0.15)
    assert "fit longer" in str(found)


def test_fit_gate_notices_a_forgotten_cut() -> None:
    made = process(1, ends=0.1, limit=3)
    case = case_of(made, record(made, 2000))
    assert gates.fit_gate(case).passed
    assert not gates.fit_gate(replace(case, v_cut=None)).passed


def test_disagreeing_estimators(clean: tuple[Process, OpeCase]) -> None:
    _, case = clean
    values = estimators.load("dr").estimate(case)
    found = gates.agreement_gate(case, {"dr": values, "wis": values + 2.0})
    assert not found.passed
    assert "wis and dr contradict each other" in str(found)
    assert "trust none of them" in str(found)
    unknown = {"dr": values, "wis": np.full_like(values, np.nan)}
    assert gates.agreement_gate(case, unknown).said == "the estimators agree"


def generalised_pareto(k: float, count: int, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(count) ** -k - 1) / k


@pytest.mark.parametrize("k", [0.2, 0.5, 1.0])
def test_tail_of_known_samples(k: float) -> None:
    rng = np.random.default_rng(1)
    found = [gates.pareto_tail(generalised_pareto(k, 20_000, rng)) for _ in range(10)]
    assert np.mean(found) == pytest.approx(k, abs=0.08)
    assert np.std(found) < 0.15


def test_tails_that_are_none() -> None:
    assert gates.pareto_tail(np.ones(1000)) == -math.inf  # all alike
    assert gates.pareto_tail(np.zeros(1000)) == -math.inf
    assert gates.pareto_tail(np.random.default_rng(2).random(1000)) < 0.3  # bounded
    assert gates.pareto_tail(np.ones(20)) == math.inf  # too few to tell


def test_tail_has_no_unit() -> None:
    weight = generalised_pareto(0.6, 2000, np.random.default_rng(3))
    assert gates.pareto_tail(weight * 1e6) == pytest.approx(gates.pareto_tail(weight), rel=1e-6)


def test_no_overlap_fails() -> None:
    """Not one episode that the policy could have made."""
    made = one_step(1)
    case = case_of(made, record(made, 300))
    found = gates.weight_gates(replace(case, policy=np.zeros_like(case.policy)))
    failed = {each.name for each in found if not each.passed}
    assert {"effective episodes", "largest weight", "mean weight"} <= failed


def test_the_horizon_says_up_to_which_decision_weights_reach() -> None:
    """A greedy policy on long episodes: after a few decisions hardly an episode is left."""
    made = process(2, ends=0.1, limit=40, greedy=True)
    case = case_of(made, record(made, 2000))
    (found,) = gates.horizon_gate(case)
    assert not found.passed
    assert "a smaller --gamma" in str(found)
    # The same by hand: weights of every episode at every decision, ended ones as they were last.
    worth = []
    for step in range(int(case.log.lengths.max())):
        at = case.log.offsets[:-1] + np.minimum(step, case.log.lengths - 1)
        weight = case.weight[at]
        worth.append(weight.sum() ** 2 / (weight**2).sum() if weight.any() else 0.0)
    reach = next(step for step, each in enumerate(worth) if each < gates.LEAST_EFFECTIVE)
    assert f"up to decision {reach:,} of at most {len(worth):,}" in found.said
    size = np.abs(case.log.discount * case.reward)
    assert found.value == pytest.approx(size[case.log.step >= reach].sum() / size.sum())


def test_near_policies_reach_to_the_end(clean: tuple[Process, OpeCase]) -> None:
    _, case = clean
    (found,) = gates.horizon_gate(case)
    assert found.passed
    assert found.value == 0
    made = one_step(1)
    assert gates.horizon_gate(case_of(made, record(made, 50))) == []


def test_what_weights_cannot_miss_is_no_matter_of_rounding() -> None:
    """Where all episodes are as long, WPDIS makes exactly 1 of returns of 1."""
    made = process(3, ends=0.0, limit=3)
    case = case_of(made, record(made, 60))
    assert set(case.log.lengths) == {3}
    found = gates.known_value_gate(case, estimators.load("wpdis").estimate, "WPDIS")
    assert found.passed
    assert found.value < 1e-9


def test_tail_of_very_many_weights() -> None:
    """Likelihoods of thousands of weights lie hundreds of nats apart."""
    weight = generalised_pareto(0.4, 1_000_000, np.random.default_rng(0))
    assert gates.pareto_tail(weight) == pytest.approx(0.4, abs=0.08)
    spread = np.exp(np.random.default_rng(1).normal(0, 8, 100_000))
    assert gates.pareto_tail(spread) > 1
