"""Propensities: logged ones checked, estimated ones calibrated, none invented."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.ope import process, record, state_of

from rbve.off_policy import behaviour
from rbve.off_policy.behaviour import behaviour_of, check_propensities
from rbve.off_policy.fits import FitPlan
from rbve.off_policy.log import DecisionLog

MADE = process(0, limit=5)
LOG = DecisionLog.of(record(MADE, 2000), MADE.gamma)
PLAN = FitPlan(steps=1)


def logits(sharper: float = 1.0) -> np.ndarray:
    """(R, A) of the true behaviour, over-confident by a factor."""
    table = np.where(MADE.legal, np.log(np.maximum(MADE.behaviour, 1e-300)) * sharper, -1e9)
    return table[state_of(LOG.dataset)]


@pytest.fixture
def cloning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cross-fitted ones are over-confident threefold, that of all episodes is right."""
    monkeypatch.setattr(
        behaviour, "fit_cloning", lambda *args, crossed=True: logits(3.0 if crossed else 1.0)
    )


@pytest.mark.parametrize("sharper", [0.5, 1.0, 3.0])
def test_temperature_recovers_known_over_confidence(sharper: float) -> None:
    found = behaviour.best_temperature(LOG.action, logits(sharper)[LOG.rows])
    assert found == pytest.approx(sharper, rel=0.1)


def test_temperature_is_the_best_of_a_grid() -> None:
    own = logits(3.0)[LOG.rows]
    found = behaviour.best_temperature(LOG.action, own)
    grid = np.geomspace(0.25, 8, 200)
    losses = [behaviour._log_loss(LOG.action, own, float(each)) for each in grid]
    assert behaviour._log_loss(LOG.action, own, found) <= min(losses) + 1e-9


def test_log_loss_by_hand() -> None:
    true = MADE.behaviour[state_of(LOG.dataset)[LOG.rows], LOG.action]
    assert behaviour._log_loss(LOG.action, logits()[LOG.rows], 1.0) == pytest.approx(
        -np.log(true).mean()
    )


@pytest.mark.usefixtures("cloning")
def test_estimated_propensities_are_calibrated() -> None:
    found = behaviour_of(LOG, PLAN, "estimated")
    state = state_of(LOG.dataset)[LOG.rows]
    assert found.source == "estimated"
    np.testing.assert_allclose(found.every, MADE.behaviour[state], atol=0.03)
    np.testing.assert_allclose(found.taken, MADE.behaviour[state, LOG.action])
    assert (found.every[~MADE.legal[state]] == 0).all()
    assert found.final is not None
    last = state_of(LOG.dataset)[LOG.final_rows]
    np.testing.assert_allclose(found.final, MADE.behaviour[last], atol=0.03)
    own = found.calibration
    assert own.temperature == pytest.approx(3.0, rel=0.1)
    assert own.error < 0.03
    assert own.log_loss < own.uniform_log_loss
    legal = MADE.legal[state]
    assert own.uniform_log_loss == pytest.approx(np.log(legal.sum(axis=1)).mean())
    assert sum(count for _, _, count in own.bins) == legal.sum()


def by_heart() -> np.ndarray:
    return np.where(np.eye(3, dtype=bool)[LOG.dataset.action.clip(0)], 30.0, 0.0)


def test_a_fit_that_knows_its_episodes_by_heart_makes_no_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        behaviour, "fit_cloning", lambda *args, crossed=True: logits() if crossed else by_heart()
    )
    found = behaviour_of(LOG, PLAN, "estimated")
    assert found.calibration.optimism > behaviour.MOST_OPTIMISM
    every = found.every[np.arange(len(LOG.action)), LOG.action]
    np.testing.assert_array_equal(found.taken, every)
    assert found.taken.max() < 1
    assert found.calibration.optimism == pytest.approx(1)  # its own log loss is 0


def test_the_number_of_updates_with_the_best_log_loss_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []

    def fit(log: DecisionLog, plan: FitPlan, progress: object, crossed: bool = True) -> np.ndarray:
        calls.append((plan.steps, plan.folds, crossed))
        right = logits()
        return {2: np.zeros_like(right), 8: right, 32: right[::-1]}[plan.steps]

    monkeypatch.setattr(behaviour, "fit_cloning", fit)
    assert behaviour_of(LOG, FitPlan(steps=32), "estimated").calibration.updates == 8
    assert calls == [(2, 5, True), (8, 5, True), (32, 5, True), (8, 5, False)]
    assert behaviour.updates_of_cloning(FitPlan(steps=32)) == 5 * (2 + 8 + 32) + 32


@pytest.mark.parametrize(("episodes", "folds"), [(2000, 5), (3, 3), (2, 2), (1, 2)])
def test_as_many_folds_as_there_are_episodes(episodes: int, folds: int) -> None:
    assert {each.folds for each in behaviour._plans(PLAN, episodes)} == {folds}


def test_calibration_error_of_over_confidence() -> None:
    """Before its temperature is set a threefold sharper fit is far off, bin by bin as counted."""
    every = behaviour._softmax(logits(3.0)[LOG.rows])
    crossed = behaviour._Crossed(PLAN, logits(3.0), 1.0, 0.0)
    found = behaviour._calibration(LOG, every, crossed, 0.0)
    legal = MADE.legal[state_of(LOG.dataset)[LOG.rows]]
    taken = np.eye(3, dtype=bool)[LOG.action]
    error = 0.0
    for low in np.arange(10) / 10:
        inside = legal & (every >= low) & ((every < low + 0.1) | (low == 0.9))
        if inside.any():
            error += inside.sum() * abs(every[inside].mean() - taken[inside].mean())
    assert found.error == pytest.approx(error / (2 * len(LOG.action)), rel=1e-6)
    assert found.error > 0.05


@pytest.mark.usefixtures("cloning")
def test_logged_propensities_come_first() -> None:
    found = behaviour_of(LOG, PLAN)
    assert found.source == "logged"
    np.testing.assert_array_equal(found.taken, LOG.dataset.propensity[LOG.rows])
    assert behaviour_of(LOG, PLAN, "estimated").source == "estimated"


@pytest.mark.usefixtures("cloning")
def test_missing_propensities_are_estimated_or_refused() -> None:
    without = DecisionLog.of(replace(LOG.dataset, propensity=None), MADE.gamma)
    assert behaviour_of(without, PLAN).source == "estimated"
    with pytest.raises(ValueError, match=r"holds no propensities; .*--propensity"):
        behaviour_of(without, PLAN, "logged")
    check_propensities(without)  # nothing to check


@pytest.mark.parametrize("bad", [0.0, -0.25, 1.5, float("nan"), float("inf")])
@pytest.mark.usefixtures("cloning")
def test_what_is_no_probability_is_refused_by_place(bad: float) -> None:
    assert LOG.dataset.propensity is not None
    column = LOG.dataset.propensity.copy()
    episode = int(np.flatnonzero(LOG.lengths > 2)[3])
    column[LOG.dataset.offsets[episode] + 2] = bad
    wrong = DecisionLog.of(replace(LOG.dataset, propensity=column), MADE.gamma)
    place = rf"^episode {episode}, decision 2: a propensity of {bad:g}; .*\(0, 1\] \(1 such\)"
    with pytest.raises(ValueError, match=place) as caught:
        behaviour_of(wrong, PLAN)
    assert "\n" not in str(caught.value)
    assert behaviour_of(wrong, PLAN, "estimated").source == "estimated"


def test_final_rows_need_no_propensity() -> None:
    assert LOG.dataset.propensity is not None
    column = LOG.dataset.propensity.copy()
    column[LOG.final_rows] = np.nan
    log = DecisionLog.of(replace(LOG.dataset, propensity=column), MADE.gamma)
    check_propensities(log)
    assert log.propensity is not None
    assert np.isfinite(log.propensity).all()
