"""Training, `rbve evaluate` and `rbve follow` are one evaluator: equal seeds, equal figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from support.cli import run

import rbve
from rbve import rows
from rbve.evaluation.evaluate import evaluation_key
from rbve.evaluation.follow import WAITING, FollowPlan, follow
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.training.run import POLICY, train_members
from rbve.training.update import member_keys

METRICS = ("return", "episode_length", "overestimation", "value_error", "action_gap")
SEED, EPISODES = 3, 12


@pytest.fixture(scope="module", params=["catch", "gymnasium:CartPole-v1"])
def env(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def trained(env: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that evaluated itself."""
    folder = tmp_path_factory.mktemp("one")
    rbve.record(env, folder / "data", 30, policy="uniform")
    spec = {"every": 20, "eval_episodes": EPISODES, "hidden": (8,)}
    out = folder / "runs"
    rbve.train(folder / "data", "bve", steps=40, env=env, seed=SEED, spec=spec, out=out)
    (own,) = out.glob("bve-*")
    return own


def figures(found: dict[str, Any]) -> dict[str, float]:
    return {name: found[name] for name in METRICS}


def test_equal_seeds_give_equal_figures_three_ways(env: str, trained: Path) -> None:
    result = rows.read(trained / rows.FILE)
    training = {row.metric: row.value for row in result.rows if row.step == 40}
    called = rbve.evaluate(trained / POLICY, env, EPISODES, seed=SEED)
    command = run(
        "evaluate", trained, "--env", env, "--episodes", EPISODES, "--seed", SEED, "--json"
    )
    follow(trained, FollowPlan(env, EPISODES, seed=SEED), once=True)
    followed = {row.metric: row.value for row in rows.read(trained / rows.EVALUATION).rows}
    (trained / rows.EVALUATION).unlink()
    assert figures(called) == figures(training)
    assert figures(json.loads(command.out)) == figures(training)
    assert figures(followed) == figures(training)
    other = rbve.evaluate(trained / POLICY, env, EPISODES, seed=SEED + 1)
    assert figures(other) != figures(training)


def test_evaluation_has_a_key_of_its_own() -> None:
    """Not that of weights or of updates of the same seed."""
    for seed in (0, 5):
        keys = [jax.random.key_data(key).tolist() for key in member_keys(seed)]
        assert len({tuple(key) for key in keys}) == 3
        expected = jax.random.fold_in(member_keys(seed)[2], 7)
        assert jax.random.key_data(evaluation_key(seed, 7)).tolist() == (
            jax.random.key_data(expected).tolist()
        )


def test_what_was_not_trained_plays_episodes_of_its_own(env: str, trained: Path) -> None:
    """Neither those of a snapshot nor those of a recording with that seed."""
    policy = Policy.load(trained / POLICY)
    unknown = replace(policy, info={})
    assert unknown.trained.step is None
    first, second = (rbve.evaluate(each, env, 30, epsilon=0.5) for each in (policy, unknown))
    assert figures(first) != figures(second)


def test_finished_is_a_row_of_its_own(
    small_job: Callable[..., Spec], catch: Any, tmp_path: Path
) -> None:
    job = small_job("bve", {"env": None})
    (tmp_path / WAITING).mkdir()
    train_members([job], [catch], [tmp_path])
    run_ = rows.read(tmp_path / rows.FILE)
    assert run_.last("final/return") is None
    assert run_.rows[-1] == rows.Row(job.steps, "finished", 1.0, 1)
    assert rows.is_finished(run_)
    unfinished = run_._replace(rows=run_.rows[:-1])
    assert not rows.is_finished(unfinished)
    # Rows of earlier versions have none, and said it by their final return.
    final = rows.Row(job.steps, "final/return", np.nan, 0)
    assert rows.is_finished(unfinished._replace(rows=[final]))


def test_a_run_is_finished_when_its_follower_is(
    small_job: Callable[..., Spec], catch: Any, tmp_path: Path
) -> None:
    job = small_job("bve", {"env": None})
    (tmp_path / WAITING).mkdir()
    train_members([job], [catch], [tmp_path])
    follow(tmp_path, FollowPlan("catch", 2))
    (whole,) = rows.find([tmp_path])
    assert rows.is_finished(whole)
    file = tmp_path / rows.EVALUATION
    head, *lines = file.read_text().splitlines(keepends=True)
    file.write_text(head + "".join(line for line in lines if '"fin' not in line))
    (part,) = rows.find([tmp_path])
    assert part.last("return") is not None
    assert not rows.is_finished(part)
