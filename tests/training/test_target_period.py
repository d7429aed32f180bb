"""How often the target network is copied where nobody says it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cli import run
from support.recordings import record_policy

from rbve import rows
from rbve.cli import _demo as demo
from rbve.paper import experiments
from rbve.paper import reproduce as study
from rbve.paper.experiments import Experiment, Method
from rbve.parts import DataRef, default_period
from rbve.spec import Spec


@pytest.mark.parametrize(
    ("steps", "period"),
    [
        (1, 1),
        (39, 1),
        (1_000, 50),
        (2_000, 100),
        (3_000, 100),
        (30_000, 100),
        (80_799, 100),
        (100_000, 125),
        (2_000_000, 2500),
    ],
)
def test_short_runs_have_a_floor(steps: int, period: int) -> None:
    assert default_period(steps) == period
    assert Spec.of(steps=steps).resolved().optimiser.target_period == period
    assert Spec.of(steps=steps, target_period=3).resolved().optimiser.target_period == 3


def test_studies_keep_theirs() -> None:
    """Rows of studies that were run before stay those of the same jobs."""
    found = set()
    for name in experiments.names():
        experiment = experiments.load(name)
        if not isinstance(experiment, Experiment) or name == "doom":  # doom says its own
            continue
        for scale in experiments.SCALES.values():
            own = experiment.at(scale)
            for data in experiment.data:
                made = study.job(DataRef("d"), data.env, Method("bve"), {}, own, 0, experiment.spec)
                found.add((own.steps, made.optimiser.target_period))
    assert sorted(found) == [
        (1_000, 1),
        (2_000, 2),
        (10_000, 12),
        (50_000, 62),
        (100_000, 125),
        (100_000, 250),  # MinAtar says its own
        (2_000_000, 2500),
    ]
    assert [(each.steps, default_period(each.steps)) for each in demo.PROBLEMS] == [
        (100_000, 125),
        (20_000, 100),
    ]


@pytest.mark.slow
def test_values_of_a_short_run_stay_near_returns(tmp_path: Path) -> None:
    """Copied after every update, Q-learning's target reached an over-estimation of 27,000."""
    record_policy("cartpole", tmp_path / "data", None, episodes=100)
    quick = ("--algorithm", "dqn", "--steps", 1000, "--every", 500, "--eval-episodes", 5)
    done = run("train", tmp_path / "data", *quick, "--out", tmp_path / "runs")
    assert done.code == 0, done.err
    assert "note: the target network is copied every 50 updates of 1,000" in done.err
    (found,) = rows.find([tmp_path / "runs"])
    (error,) = (row.value for row in found.rows if row.metric == "final/overestimation")
    assert error < 200
    assert run("report", tmp_path / "runs", "--out", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "1000 updates a run; the target network is copied every 50." in page


def test_nothing_is_said_where_there_is_no_target(catch_path: Path, tmp_path: Path) -> None:
    quick = ("--algorithm", "bc", "mc", "--steps", 4, "--hidden", 4, "--eval-episodes", 2)
    done = run("train", catch_path, *quick, "--out", tmp_path)
    assert done.code == 0, done.err
    assert "target network" not in done.err
