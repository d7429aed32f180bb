"""A policy's outputs on all rows of a log are those it gives one decision at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.sequences import ACTIONS, dataset

from rbve.policy import Policy
from rbve.policy.outputs import Blocks, outputs_on
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.training.run import POLICY

DATA = dataset()  # episodes of several lengths, with masks
KINDS: dict[str, dict[str, Any]] = {
    "dqn": {},
    "bcq": {},
    "bc": {},
    "stacked": {"algorithm": "dqn", "stack": 3},
    "memory": {"algorithm": "dqn", "memory": 4, "batch_size": 2},
}


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Policy]:
    usual: dict[str, Any] = {"path": "log", "fingerprint": "log", "steps": 30, "every": 30}
    usual |= {"hidden": (5,), "batch_size": 4, "learning_rate": 1e-2}
    jobs = [Spec.of(**{**usual, "algorithm": name, **own}) for name, own in KINDS.items()]
    folders = run_jobs(jobs, tmp_path_factory.mktemp("runs"), datasets={"log": DATA})
    return {name: Policy.load(at / POLICY) for name, at in zip(KINDS, folders, strict=True)}


def seen(policy: Policy, first: int, row: int) -> np.ndarray:
    """What the policy sees of a row: with a stack the rows before it, blank before the first."""
    stack = policy.trained.stack
    frames = [
        DATA.obs[at] if at >= first else np.zeros_like(DATA.obs[0])
        for at in range(row - stack + 1, row + 1)
    ]
    return np.concatenate(frames)


@pytest.mark.parametrize("block", [4096, 7])
@pytest.mark.parametrize("name", ["dqn", "bcq", "bc", "stacked"])
def test_rows_one_by_one(name: str, block: int, policies: dict[str, Policy]) -> None:
    policy = policies[name]
    found = outputs_on(policy, DATA, blocks=Blocks(rows=block))
    assert found.scores.shape == found.q.shape == (len(DATA.action), ACTIONS)
    assert DATA.legal is not None
    for first, stop in zip(DATA.offsets[:-1], DATA.offsets[1:], strict=True):
        for row in range(first, stop):
            obs = seen(policy, first, row)
            scores = policy.scores(obs, legal=DATA.legal[row])
            np.testing.assert_allclose(found.scores[row], scores, rtol=1e-5, atol=1e-6)
            if name != "bc":
                np.testing.assert_allclose(found.q[row], policy.q_values(obs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("beside", [64, 2])
def test_memory_step_by_step(beside: int, policies: dict[str, Policy]) -> None:
    """Fed with what the log did and received, not with what the policy would have done."""
    policy = policies["memory"]
    found = outputs_on(policy, DATA, blocks=Blocks(episodes=beside))
    assert DATA.legal is not None
    for first, stop in zip(DATA.offsets[:-1], DATA.offsets[1:], strict=True):
        session, reward = policy.start(), None
        for row in range(first, stop):
            session.act(DATA.obs[row], reward, legal=DATA.legal[row])
            assert session.scores is not None
            legal = DATA.legal[row]
            np.testing.assert_allclose(
                found.scores[row][legal], session.scores[legal], rtol=1e-4, atol=1e-5
            )
            if row + 1 < stop:
                session.last_action, reward = int(DATA.action[row]), float(DATA.reward[row])


def test_other_actions_and_observations_are_refused(policies: dict[str, Policy]) -> None:
    policy = policies["dqn"]
    with pytest.raises(ValueError, match=r"knows the actions 0, 1, 2 and the log holds a, b, c"):
        outputs_on(policy, replace(DATA, actions=("a", "b", "c")))
    wider = np.concatenate([DATA.obs, DATA.obs], axis=1)
    with pytest.raises(ValueError, match=r"shape \(2,\) and the log holds \(4,\)"):
        outputs_on(policy, replace(DATA, obs=wider))
