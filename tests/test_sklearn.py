"""PolicyLearner among scikit-learn's own tools."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.model_selection import GridSearchCV, GroupKFold  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from rbve.sklearn import PolicyLearner  # noqa: E402

# What scikit-learn asks of estimators and this one does not do, with the reason.
DEVIATIONS: dict[str, str] = {}


def quick(**fields: Any) -> PolicyLearner:
    own: dict[str, Any] = {"steps": 300, "hidden": (16,), "score_steps": 200, "batch_size": 64}
    return PolicyLearner("bve", **(own | {"learning_rate": 3e-3, "random_state": 0} | fields))


def log(episodes: int = 200, length: int = 2) -> tuple[Any, ...]:
    """Chosen at random; the second action pays where the first number is positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(3, 5, (episodes * length, 3))
    y = rng.choice(np.array(["stay", "go", "ask"]), len(X))
    reward = np.where((X[:, 0] > 3) == (y == "go"), 1.0, 0.0)
    return X, y, reward, np.repeat(np.arange(episodes), length)


@pytest.fixture(scope="module")
def learner() -> PolicyLearner:
    X, y, reward, groups = log()
    return quick(steps=800).fit(X, y, reward=reward, groups=groups)


def test_it_learns_from_rewards(learner: PolicyLearner) -> None:
    X, y, reward, groups = log()
    assert learner.classes_.tolist() == ["ask", "go", "stay"]
    chosen = learner.predict(X)
    assert np.mean((chosen == "go") == (X[:, 0] > 3)) > 0.85
    assert (
        learner.predict_proba(X).argmax(axis=1) == np.searchsorted(learner.classes_, chosen)
    ).all()
    with pytest.warns(UserWarning, match="no estimate passed its gates: effective episodes"):
        worth = learner.score(X, y, reward=reward, groups=groups)
    own = reward.reshape(-1, 2).sum(axis=1).mean()
    assert worth > own + 0.3


def test_without_rewards_it_clones() -> None:
    X, y, reward, _ = log()
    better = reward > 0
    clone = quick(steps=1500).fit(X[better], y[better])
    assert clone.policy_.algorithm.name == "bc"
    chances = clone.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert np.median(chances.max(axis=1) - 1 / 3) > 0.05
    assert clone.score(X[better], y[better]) > 0.6


def test_seeds_repeat() -> None:
    X, y, reward, groups = log(40)
    one, other, third = (
        quick(steps=50, random_state=seed).fit(X, y, reward=reward, groups=groups)
        for seed in (1, 1, 2)
    )
    rows = one.policy_.features.rows([dict(zip(("x0", "x1", "x2"), row, strict=True)) for row in X])
    np.testing.assert_array_equal(one.policy_.scores(rows), other.policy_.scores(rows))
    assert not np.array_equal(one.policy_.scores(rows), third.policy_.scores(rows))


def test_what_does_not_fit() -> None:
    X, y, reward, groups = log(10)
    with pytest.raises(ValueError, match="reward needs 20 numbers"):
        quick().fit(X, y, reward=reward[:3])
    with pytest.raises(ValueError, match="groups needs 20 values"):
        quick().fit(X, y, reward=reward, groups=groups[:3])
    with pytest.raises(ValueError, match="reward contains NaN"):
        quick().fit(X, y, reward=np.where(reward > 0, np.nan, 0))


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
@pytest.mark.filterwarnings("ignore:no estimate passed")  # of sixty episodes
def test_in_a_pipeline_and_a_search_over_episodes() -> None:
    X, y, reward, groups = log(60)
    learner = quick(steps=60).set_fit_request(reward=True, groups=True)
    learner = learner.set_score_request(reward=True, groups=True)
    pipeline = make_pipeline(StandardScaler(), learner)
    grid = {"policylearner__steps": [20, 60]}
    search = GridSearchCV(pipeline, grid, cv=GroupKFold(2), error_score="raise", refit=False)
    search.fit(X, y, reward=reward, groups=groups)
    scores = search.cv_results_["mean_test_score"]
    assert scores.shape == (2,)
    assert np.isfinite(scores).all()
    pipeline.fit(X, y, reward=reward, groups=groups)
    assert set(pipeline.predict(X)) <= {"ask", "go", "stay"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Skipping check")  # what this installation has no means for
def test_scikit_learns_own_checks() -> None:
    """All of them, but for those named above."""
    learner = PolicyLearner(steps=400, learning_rate=5e-3, hidden=(32,), score_steps=50)
    results = check_estimator(learner, expected_failed_checks=DEVIATIONS, on_fail=None)
    failed = {
        each["check_name"]: str(each["exception"]) for each in results if each["status"] == "failed"
    }
    assert failed == {}
    assert {each["check_name"] for each in results if each["status"] == "xfail"} == {*DEVIATIONS}
    assert len(results) > 40


def test_without_scikit_learn_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "rbve.sklearn")
    with pytest.raises(ImportError, match=r'pip install "rbve\[sklearn\]"'):
        import rbve.sklearn  # noqa: F401
