"""Policies as estimators of scikit-learn: in pipelines, searches and cross-validation.

from rbve.sklearn import PolicyLearner

learner = PolicyLearner("rbve").fit(X, actions, reward=rewards, groups=episodes)
learner.predict(X)                                           # the best action
learner.score(X, actions, reward=rewards, groups=episodes)   # what it is worth, by the log
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.metrics import accuracy_score
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data
except ImportError:
    raise ImportError('rbve.sklearn needs scikit-learn: pip install "rbve[sklearn]"') from None

from rbve.api import train
from rbve.data.dataset import Dataset
from rbve.data.episode import Episode
from rbve.data.features import Feature, Features
from rbve.decisions import ope
from rbve.policy import Policy

__all__ = ["PolicyLearner"]


class PolicyLearner(ClassifierMixin, BaseEstimator):
    """Learns which action to take from a log of decisions: rows of X, the actions taken, rewards.

    Rows of one group are the steps of an episode, in their order. Without groups every row is an
    episode of one decision; without rewards the actions are cloned, whatever the algorithm.

    Args:
        algorithm: As rbve.train takes it.
        steps: Updates.
        gamma: Discount.
        hidden: Units per dense layer.
        learning_rate: Adam's step size.
        batch_size: Rows per update.
        settings: Further fields of rbve.spec.Spec and settings of the algorithm, by name.
        score_steps: Updates of each fit behind `score`.
        random_state: Seed of weights and batches.

    Attributes:
        classes_: The actions.
        policy_: The trained Policy; its columns are x0, x1, ... or the names of X's columns.
    """

    def __init__(
        self,
        algorithm: str = "rbve",
        *,
        steps: int = 2_000,
        gamma: float = 0.99,
        hidden: tuple[int, ...] = (56, 56),
        learning_rate: float = 1e-3,
        batch_size: int = 128,
        settings: Mapping[str, Any] | None = None,
        score_steps: int = 1_000,
        random_state: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.steps = steps
        self.gamma = gamma
        self.hidden = hidden
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.settings = settings
        self.score_steps = score_steps
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, reward: Any = None, groups: Any = None) -> "PolicyLearner":
        """Learn.

        Args:
            X: (N, columns) numbers, what each decision saw.
            y: (N,) the action taken in each row.
            reward: (N,) what it brought; None = clone the actions.
            groups: (N,) the episode of each row; None = each row is one.
        """
        X, y = validate_data(self, X, y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        data = self._dataset(X, y, reward, groups, _features(X, self._names(X)))
        own: dict[str, Any] = {
            "steps": self.steps, "gamma": self.gamma, "hidden": tuple(self.hidden), "seed": seed,
            "learning_rate": self.learning_rate, "holdout": 0.0, "batch_size": self.batch_size,
            "every": self.steps,
        }  # fmt: skip
        own |= dict(self.settings or {}) if reward is not None else {}
        with warnings.catch_warnings():  # of what a log should have, which a table need not
            warnings.simplefilter("ignore", UserWarning)
            self.policy_: Policy = train(data, "bc" if reward is None else self.algorithm, spec=own)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(N,) the best actions."""
        found = self._decided(X)
        return self.classes_[found["action"]]

    def predict_proba(self, X: Any) -> np.ndarray:
        """(N, actions) with which probability each is taken: of cloning its own, else 1 for the
        best."""
        found = self._decided(X)
        if self.policy_.algorithm.values:
            return found["probabilities"].astype(np.float64)
        scores = found["scores"].astype(np.float64)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        return chances / chances.sum(axis=1, keepdims=True)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, reward: Any = None, groups: Any = None
    ) -> float:
        """What the policy would earn an episode, estimated by this log; without rewards the share
        of its actions that the log took.

        Where no estimate passes the gates of rbve.ope a warning says which fail, and the number is
        for comparison at best.
        """
        if reward is None:
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        if sample_weight is not None:
            raise ValueError("an estimate by the log takes no sample_weight")
        check_is_fitted(self)
        X, y = validate_data(self, X, y, reset=False)
        strangers = set(np.unique(y)) - set(self.classes_)
        if strangers:
            raise ValueError(f"actions that were not there in fit: {sorted(strangers)}")
        data = self._dataset(X, y, reward, groups, self.policy_.features)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            plan: dict[str, Any] = {"fit_steps": self.score_steps, "seen": True}
            judged = ope(data, {"policy": self.policy_}, gamma=self.gamma, **plan)["policy"]
        if judged.best is not None:
            return judged.best.value
        failed = sorted({name for each in judged.estimates for name in each.failed})
        warnings.warn(f"no estimate passed its gates: {', '.join(failed)}", stacklevel=2)
        return judged.estimates[0].value

    def _decided(self, X: Any) -> dict[str, np.ndarray]:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self.policy_.decider.rows(X)

    def _names(self, X: np.ndarray) -> list[str]:
        known = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(X.shape[1])] if known is None else list(map(str, known))

    def _dataset(
        self, X: np.ndarray, y: np.ndarray, reward: Any, groups: Any, features: Features | None
    ) -> Dataset:
        count = len(X)
        action = np.searchsorted(self.classes_, y)
        earned = np.zeros(count) if reward is None else _column(reward, count, "reward")
        episode = np.arange(count) if groups is None else _codes(groups, count)
        order = np.argsort(episode, kind="stable")
        starts = np.flatnonzero(np.diff(episode[order], prepend=-1))
        X = np.asarray(X, np.float64)
        episodes = []
        for rows in np.split(order, starts[1:]):
            steps: dict[str, Any] = {
                "obs": X[[*rows, rows[-1]]], "action": action[rows], "reward": earned[rows],
            }  # fmt: skip
            episodes.append(Episode.from_steps(**steps, terminated=True))
        names = [str(each) for each in self.classes_.tolist()]
        return Dataset.from_episodes(episodes, names, features=features)


def _column(values: Any, count: int, name: str) -> np.ndarray:
    column = check_array(values, ensure_2d=False, dtype=np.float64, input_name=name)
    if column.shape != (count,):
        raise ValueError(f"{name} needs {count} numbers, one for each row; got {column.shape}")
    return column


def _codes(groups: Any, count: int) -> np.ndarray:
    """Groups by number."""
    values = np.asarray(groups)
    if values.shape != (count,):
        raise ValueError(f"groups needs {count} values, one for each row; got {values.shape}")
    return np.unique(values, return_inverse=True)[1]


def _features(X: np.ndarray, names: list[str]) -> Features:
    """Standardised by this data."""
    mean, scale = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    scale = np.where(scale > 0, scale, 1.0)
    low, high = X.min(axis=0), X.max(axis=0)
    columns = zip(names, mean, scale, low, high, strict=True)
    return Features(
        tuple(
            Feature(name, mean=float(m), scale=float(s), low=float(least), high=float(most))
            for name, m, s, least, most in columns
        )
    )
