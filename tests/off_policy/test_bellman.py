"""Supervised Bellman validation orders Q-functions where the plain error is fooled by chance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.ope import Process, process, record, state_of

from rbve.off_policy.bellman import Candidate, bellman_errors, candidate_errors, empirical_error
from rbve.off_policy.fits import FitPlan, fit_numbers, fold_of
from rbve.off_policy.log import DecisionLog
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.training.run import POLICY

PLAN = FitPlan(steps=600, hidden=(16,), learning_rate=3e-3)


def lottery() -> Process:
    """From the first state by chance to one that pays 1 or one that pays −1."""
    made = process(0, gamma=1.0, noise=0.1)
    following = np.zeros_like(made.following)
    following[0, :, 1:3] = 0.5
    reward = np.zeros_like(made.reward)
    reward[1], reward[2] = 1.0, -1.0
    return replace(made, following=following, reward=reward, start=np.eye(4)[0])


@pytest.fixture(scope="module")
def drawn() -> tuple[Process, DecisionLog]:
    made = lottery()
    return made, DecisionLog.of(record(made, 300), made.gamma)


def candidate(made: Process, log: DecisionLog, q: np.ndarray) -> Candidate:
    state = state_of(log.dataset)
    return Candidate(q[state], made.policy[state])


def test_targets_by_hand() -> None:
    made = process(1, ends=0.3, limit=3)
    log = DecisionLog.of(record(made, 60), made.gamma)
    own = candidate(made, log, made.q)
    state = state_of(log.dataset)
    expected = []
    for row, reward in zip(log.rows, log.reward, strict=True):
        episode = int(np.searchsorted(log.dataset.offsets, row, side="right")) - 1
        last = row + 1 == log.dataset.offsets[episode + 1] - 1
        ended = last and log.dataset.terminated[episode]
        expected.append(reward + (0.0 if ended else made.gamma * made.v[state[row + 1]]))
    np.testing.assert_allclose(own.targets(log), expected)
    np.testing.assert_array_equal(own.taken(log), made.q[state[log.rows], log.action])


def test_values_of_what_is_never_done_do_not_count() -> None:
    made = process(1, ends=0.3, limit=3, greedy=True)
    log = DecisionLog.of(record(made, 60), made.gamma)
    with_gaps = np.where(made.policy > 0, made.q, -np.inf)
    found = candidate(made, log, with_gaps).targets(log)
    np.testing.assert_allclose(found, candidate(made, log, made.q).targets(log))


def test_order_is_right_where_the_plain_error_is_wrong(drawn: tuple[Process, DecisionLog]) -> None:
    """Smaller values have smaller errors against targets that vary by chance."""
    made, log = drawn
    assert made.q[:3, 0] == pytest.approx([0, 1, -1])
    candidates = {
        "exact": candidate(made, log, made.q),
        "shrunk": candidate(made, log, 0.6 * made.q),
        "shifted": candidate(made, log, made.q + 0.7),
    }
    plain = {name: empirical_error(log, each) for name, each in candidates.items()}
    candidates["diverged"] = candidate(made, log, made.q * np.nan)
    assert plain["shrunk"] < 0.7 * plain["exact"]
    found = candidate_errors(log, candidates, PLAN)
    assert list(found) == list(candidates)
    assert found["exact"] < 0.5 * min(found["shrunk"], found["shifted"])
    # Half of the decisions are the last ones, off by .4; the others' targets agree on average.
    assert found["shrunk"] == pytest.approx(0.08, abs=0.04)
    # Where an episode goes on, a shift shows on both sides.
    assert found["shifted"] == pytest.approx(0.7**2 / 2, abs=0.08)
    assert found["exact"] < 0.03
    assert found["diverged"] == np.inf


@pytest.fixture(scope="module")
def policies(
    drawn: tuple[Process, DecisionLog], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Policy]:
    _, log = drawn
    out: Path = tmp_path_factory.mktemp("policies")
    usual = {"path": "log", "fingerprint": "log", "steps": 400, "every": 400, "hidden": (16,)}
    usual |= {"learning_rate": 3e-3, "batch_size": 32, "gamma": 1.0}
    kinds = {"dqn": {}, "late": {"algorithm": "dqn", "learning_rate": 1e-5}, "bc": {}}
    jobs = [Spec.of(**{**usual, "algorithm": name, **own}) for name, own in kinds.items()]
    folders = run_jobs(jobs, out, datasets={"log": log.dataset})
    return {name: Policy.load(folder / POLICY) for name, folder in zip(kinds, folders, strict=True)}


def test_trained_policies(drawn: tuple[Process, DecisionLog], policies: dict[str, Policy]) -> None:
    """One that learned and one that hardly did."""
    _, log = drawn
    with_values = {name: policies[name] for name in ("late", "dqn")}
    found = bellman_errors(log, with_values, PLAN)
    assert list(found) == ["late", "dqn"]
    assert found["dqn"] < 0.5 * found["late"]


def test_cloning_has_no_bellman_error(
    drawn: tuple[Process, DecisionLog], policies: dict[str, Policy]
) -> None:
    with pytest.raises(ValueError, match="bc learns which action the data takes"):
        bellman_errors(drawn[1], {"bc": policies["bc"]}, PLAN)


def test_an_episode_is_judged_by_other_episodes(drawn: tuple[Process, DecisionLog]) -> None:
    """Numbers that an episode alone holds cannot be known from the others."""
    _, log = drawn
    fold = fold_of(log.episodes, PLAN.folds, PLAN.seed)
    numbers = np.where(fold[log.episode] == 0, 1.0, -1.0)
    [fitted] = fit_numbers(log, [numbers], PLAN)
    assert fitted[fold[log.episode] == 0].mean() < -0.8
    assert fitted[fold[log.episode] == 1].mean() > 0.8
