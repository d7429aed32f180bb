"""The benchmark on one-step logs: its logs are what it says, and estimators do on them what their
theory promises."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"
RUNS = 40


@pytest.fixture(scope="module")
def bandits() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        return importlib.import_module("bandits")


@pytest.fixture(scope="module")
def logs(bandits: ModuleType) -> list:
    return [bandits.synthetic(seed, rows=300, actions=5, dims=2) for seed in range(RUNS)]


def test_a_log_is_what_its_definition_says(logs: list) -> None:
    """The behaviour prefers what is worse, so the policy, which learned from it, is worth more."""
    for log in logs:
        np.testing.assert_allclose(log.policy.sum(axis=1), 1.0)
        assert set(np.unique(log.reward)) == {0.0, 1.0}
        assert log.propensity.min() > np.exp(-3) / 5  # of softmax(−3 q) with q in (0, 1)
    gain = np.array([log.value - log.reward.mean() for log in logs])
    assert gain.mean() > 4 * gain.std(ddof=1) / RUNS**0.5


def test_importance_sampling_is_unbiased_and_a_wrong_model_is_corrected(
    bandits: ModuleType, logs: list
) -> None:
    wrong = [log._replace(q=log.q * 0.5) for log in logs]
    found = [bandits.estimates(bandits.case_of(log)) for log in wrong]
    truth = np.array([log.value for log in logs])

    def error(label: str) -> np.ndarray:
        return np.array([each[label] for each in found]) - truth

    for label in ("IPW", "DR"):  # DR needs the propensities alone
        assert abs(error(label).mean()) < 4 * error(label).std(ddof=1) / RUNS**0.5
    assert abs(error("DM").mean()) > 0.4 * truth.mean()
    assert np.abs(error("DR")).mean() < 0.2 * np.abs(error("DM")).mean()


def test_every_published_figure_has_an_estimator(bandits: ModuleType, logs: list) -> None:
    errors = bandits.errors(logs[0])
    for name, (_, figures) in bandits.THEIRS.items():
        rows = bandits.table(name, [errors, errors])
        assert set(figures) <= {row["estimator"] for row in rows}
        for row in rows:
            assert row["ours"] == pytest.approx(errors[row["estimator"]])
            assert row["ratio"] == pytest.approx(row["ours"] / row["theirs"])


def test_cross_fitting_predicts_from_other_rows(bandits: ModuleType) -> None:
    """A model that knows only the mean of what it was fitted to never sees the row it predicts."""
    rng = np.random.default_rng(0)
    reward = 2.0 ** np.arange(9)  # no two sums of some are equal
    context, action = np.zeros((9, 1)), np.zeros(9, int)

    def mean_of(inputs: np.ndarray, label: np.ndarray) -> object:
        return lambda rows: np.full(len(rows), label.mean())

    q = bandits.cross_fit(context, action, reward, 2, rng, mean_of)
    folds = [np.flatnonzero(np.isclose(q[:, 0], each)) for each in np.unique(q[:, 0])]
    assert [len(fold) for fold in folds] == [3, 3, 3]
    for fold in folds:
        np.testing.assert_allclose(q[fold], np.delete(reward, fold).mean())


def test_regressions_meet_their_score_equations(bandits: ModuleType) -> None:
    """With a free bias, predicted and observed shares are equal at the optimum."""
    rng = np.random.default_rng(1)
    inputs, weight = rng.normal(size=(400, 2)), rng.uniform(0.5, 2.0, 400)
    truth = bandits.softmax(inputs @ rng.normal(size=(2, 3)))
    label = bandits.draw(truth, rng)
    chance = bandits.multinomial_regression(inputs, label, weight, 3)(inputs)
    observed = (weight[:, None] * np.eye(3)[label]).sum(axis=0)
    np.testing.assert_allclose((weight[:, None] * chance).sum(axis=0), observed, rtol=1e-2)
    assert np.abs(chance - truth).mean() < 0.1
    one = (label == 1).astype(float)
    fitted = bandits.logistic_regression(inputs, one)(inputs)
    assert fitted.sum() == pytest.approx(one.sum(), rel=1e-6)


def test_digits_name_the_package_they_need(
    bandits: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(SystemExit, match="pip install scikit-learn"):
        bandits.digits(0)
