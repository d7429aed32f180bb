"""A log as decisions one after another: what is left out, sums, products, self-normalised means."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.ope import Process, case_of, process, record, standard_error, state_of

from rbve.data.dataset import Dataset
from rbve.data.episode import Episode
from rbve.off_policy import estimators
from rbve.off_policy.case import OpeCase
from rbve.off_policy.log import DecisionLog

LENGTHS = (3, 1, 4, 2)


def small(gamma: float = 0.5, terminated: tuple[bool, ...] = (True,) * 4) -> DecisionLog:
    rng = np.random.default_rng(0)
    episodes = [
        Episode.from_steps(
            rng.normal(size=(length + 1, 2)).astype(np.float32),
            rng.integers(0, 3, length),
            rng.normal(size=length),
            ended,
        )
        for length, ended in zip(LENGTHS, terminated, strict=True)
    ]
    return DecisionLog.of(Dataset.from_episodes(episodes, 3), gamma)


def by_episode(log: DecisionLog, values: np.ndarray) -> list[np.ndarray]:
    return np.split(values, log.offsets[1:-1])


def test_decisions_and_their_places() -> None:
    log = small()
    assert [len(part) for part in by_episode(log, log.action)] == list(LENGTHS)
    assert log.step.tolist() == [0, 1, 2, 0, 0, 1, 2, 3, 0, 1]
    assert log.episode.tolist() == [0, 0, 0, 1, 2, 2, 2, 2, 3, 3]
    np.testing.assert_array_equal(log.discount, 0.5**log.step)
    assert (log.action >= 0).all()
    assert (log.dataset.action[log.final_rows] == -1).all()
    assert not log.one_step


def test_sums_products_and_what_came_before() -> None:
    log = small()
    values = np.random.default_rng(1).uniform(0.5, 2, len(log.action))
    parts = by_episode(log, values)
    np.testing.assert_allclose(log.sum(values), [part.sum() for part in parts])
    np.testing.assert_allclose(
        log.cumulative_product(values), np.concatenate([np.cumprod(part) for part in parts])
    )
    before = np.concatenate([np.append(1.0, part[:-1]) for part in parts])
    np.testing.assert_array_equal(log.before(values), before)
    np.testing.assert_array_equal(log.first(values), [part[0] for part in parts])
    np.testing.assert_array_equal(log.last(values), [part[-1] for part in parts])


def padded(
    log: DecisionLog, weight: np.ndarray, values: np.ndarray, ended: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(E, T) with absorbing states: their weight stays and they bring nothing."""
    steps = int(log.lengths.max())
    w, x = np.zeros((log.episodes, steps)), np.zeros((log.episodes, steps))
    for index, (own, mine) in enumerate(
        zip(by_episode(log, weight), by_episode(log, values), strict=True)
    ):
        w[index], w[index, : len(own)] = ended[index], own
        x[index, : len(own)] = mine
    return w, x


def slow(log: DecisionLog, w: np.ndarray, x: np.ndarray) -> tuple[float, np.ndarray]:
    """Value and influence values of Σ_t γ^t Σ_i w x / Σ_i w."""
    value, influence = 0.0, np.zeros(log.episodes)
    for step in range(w.shape[1]):
        total = w[:, step].sum()
        if total == 0:
            continue
        mean = (w[:, step] * x[:, step]).sum() / total
        value += log.gamma**step * mean
        own = log.episodes * w[:, step] * (x[:, step] - mean) / total
        influence += log.gamma**step * own
    return value, value + influence


@pytest.mark.parametrize("zeros", [False, True])
def test_self_normalised_is_the_slow_padded_reference(zeros: bool) -> None:
    log, rng = small(0.7), np.random.default_rng(2)
    ratio = rng.uniform(0.2, 3, len(log.action))
    if zeros:
        ratio[log.step == 1] = 0.0  # no weight is left from here on, but of the episode of one step
    weight, values = log.cumulative_product(ratio), rng.normal(size=len(ratio))
    ended = log.last(weight)
    for own in (weight, log.before(weight)):
        value, influence = slow(log, *padded(log, own, values, ended))
        found = log.self_normalised(own, values, ended)
        assert found.mean() == pytest.approx(value)
        np.testing.assert_allclose(found, influence)


def test_where_no_weight_is_left_nothing_is_said() -> None:
    log = small(0.7)
    nothing = np.zeros(len(log.action))
    values = np.ones(len(log.action))
    assert (log.self_normalised(nothing, values, np.zeros(4)) == 0).all()


def test_absorbed_weights_average_one() -> None:
    """At every step, and so do those one decision earlier: what self-normalising divides by."""
    made = process(0)
    case = case_of(made, record(made, 20_000))
    log, ended = case.log, case.log.last(case.weight)
    for own in (case.weight, log.before(case.weight)):
        w, _ = padded(log, own, own, ended)
        error = w.std(axis=0, ddof=1) / log.episodes**0.5
        assert (np.abs(w.mean(axis=0) - 1) <= 4 * error).all()


def resampled(name: str, made: Process, case: OpeCase, rng: np.random.Generator) -> float:
    chosen = rng.integers(0, case.log.episodes, case.log.episodes)
    again = case_of(made, case.log.dataset.select(chosen, "bootstrap"))
    return float(estimators.load(name).estimate(again).mean())


@pytest.mark.parametrize("name", ["wis", "wpdis", "wdr"])
def test_influence_values_have_the_spread_of_the_estimate(name: str) -> None:
    """Linearised, against estimating anew from episodes drawn again."""
    made, rng = process(0, ends=0.4, limit=5), np.random.default_rng(3)
    case = case_of(made, record(made, 600, seed=2), q=made.q * 0.5)
    estimates = [resampled(name, made, case, rng) for _ in range(300)]
    error = standard_error(estimators.load(name).estimate(case))
    assert np.std(estimates) == pytest.approx(error, rel=0.15)


def test_self_normalised_bias_vanishes() -> None:
    """Over a few hundred small logs the mean is off by O(1/E): less with more episodes."""
    made = process(0, ends=0.4, limit=5)
    off = {}
    for episodes in (20, 200):
        whole = record(made, 200 * episodes, seed=episodes)
        parts = [whole.part(k * episodes, (k + 1) * episodes) for k in range(200)]
        values = np.array(
            [estimators.load("wpdis").estimate(case_of(made, part)).mean() for part in parts]
        )
        off[episodes] = abs(values.mean() - made.value), standard_error(values)
    assert off[200][0] < 4 * off[200][1]
    assert off[200][1] < 0.5 * off[20][1]


def test_fragments_and_unknown_actions_are_left_out() -> None:
    data = small().dataset
    complete = np.array([True, False, True, True])
    action = data.action.copy()
    action[data.offsets[3]] = -1
    log = DecisionLog.of(dataclasses.replace(data, complete=complete, action=action), 0.9)
    assert log.lengths.tolist() == [3, 4]
    assert any("1 of 4 episodes are fragments" in note for note in log.notes)
    assert any("1 episodes have decisions without an action" in note for note in log.notes)
    np.testing.assert_array_equal(log.dataset.obs[:4], data.obs[:4])
    assert DecisionLog.of(data, 0.9).dataset is data  # nothing to leave out


@pytest.mark.parametrize("gamma", [-0.1, 1.1, float("nan")])
def test_gamma_out_of_bounds(gamma: float) -> None:
    with pytest.raises(ValueError, match=r"gamma must lie in \[0, 1\]"):
        DecisionLog.of(small().dataset, gamma)


def test_no_whole_episode() -> None:
    data = small().dataset
    with pytest.raises(ValueError, match="no whole episode is left"):
        DecisionLog.of(dataclasses.replace(data, complete=np.zeros(4, bool)), 0.9)


def test_cut_episodes_are_told_and_carry_a_value_beyond() -> None:
    log = small(0.5, (True, False, True, False))
    assert any("2 of 4 episodes were cut" in note for note in log.notes)
    probabilities = np.full((len(log.action), 3), 1 / 3)
    beyond = np.array([100.0, 10.0, 100.0, 20.0])  # of ended episodes nobody asks
    case = OpeCase(log, probabilities, np.full(len(log.action), 1 / 3), v_cut=beyond)
    plain = dataclasses.replace(case, v_cut=None).returns
    np.testing.assert_allclose(case.returns - plain, [0, 0.5 * 10, 0, 0.5**2 * 20])


def test_an_unknown_final_observation_is_no_state_to_bootstrap_from() -> None:
    """Where a cut episode's final observation is a filler, it is cut a decision earlier."""
    made = process(1, ends=0.0, limit=4)
    data = record(made, 4000)
    filler = np.array(data.obs)
    filler[data.offsets[1:] - 1] = 99.0
    unknown = dataclasses.replace(data, obs=filler, final_observed=np.zeros(4000, bool))
    log = DecisionLog.of(unknown, made.gamma)
    assert log.cut.all()
    assert (log.lengths == 3).all()
    assert log.dataset.final_observed is None
    assert (log.dataset.action[log.final_rows] == -1).all()
    assert (log.dataset.reward[log.final_rows] == 0).all()
    assert (np.asarray(log.dataset.obs) < 2).all()
    np.testing.assert_array_equal(log.dataset.legal[:3], data.legal[:3])
    assert any("lack a final observation" in note for note in log.notes)
    case = case_of(made, unknown)
    state = state_of(case.log.dataset)
    np.testing.assert_array_equal(case.v_cut, made.v[state[case.log.final_rows]])
    for name in ("dr", "wdr", "pdis", "wis"):
        values = estimators.load(name).estimate(case)
        assert abs(values.mean() - made.value) < 4 * standard_error(values)


def test_one_decision_and_no_observation_after_it() -> None:
    data = small(0.5, (True, False, True, True)).dataset
    unknown = dataclasses.replace(data, final_observed=np.array([True, False, True, True]))
    log = DecisionLog.of(unknown, 0.9)
    assert log.lengths.tolist() == [3, 4, 2]
    assert any("1 of 4 episodes" in note and "one decision" in note for note in log.notes)
