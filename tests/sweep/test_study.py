"""A study: recordings and jobs from an experiment, shared, resumed, and the same after a stop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rbve import experiments, rows
from rbve.data import load
from rbve.experiments import Data, Experiment, Method, Scale, Theory
from rbve.sweep import study
from rbve.training.run import Progress

TINY = Scale(datasets=2, steps=40, episodes=0.01, settings=2, evaluations=2)
CATCH = Experiment(
    question="?",
    paper="nowhere",
    data=(Data("catch"), Data("catch", keep=0.5), Data("catch", expert=0.25)),
    methods=(
        Method("bve", sweep=({"learning_rate": 1e-3}, {}, {"learning_rate": 9.0})),
        Method("rbve", settings={"lam": 0.5}),
    ),
    figure="methods",
)


class Stopped(Exception):
    pass


def all_rows(out: Path) -> dict[str, bytes]:
    return {file.parent.name: file.read_bytes() for file in out.glob("runs/*/rows.jsonl")}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    # Jobs know their data by its path: a relative one makes two studies comparable.
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        out = Path("study")
        study.record_all(study.recordings([CATCH], TINY), out)
        study.run({"catch": CATCH}, TINY, out)
    return folder / "study"


def test_recordings_are_shared_and_experts_come_last() -> None:
    wanted = study.recordings([CATCH, CATCH], TINY)
    # Two agents, whatever share of their data is kept, and an expert of each.
    assert [(each.expert, each.seed) for each in wanted] == [
        (None, 0),
        (None, 1),
        (0.25, 0),
        (0.25, 1),
    ]
    assert {each.episodes for each in wanted} == {20}  # 1% of the paper's 2000


def test_data_is_what_the_experiment_says(done: Path) -> None:
    expert = load(done / "data" / "catch-0-expert-0.25" / "1")
    assert expert.provenance["epsilon"] == 0.25
    online = load(done / "data" / "catch-0" / "1")
    assert online.provenance["behaviour"] == "online dqn"
    assert expert.provenance["reference"] == online.provenance["reference"]


def test_jobs_are_all_combinations(done: Path) -> None:
    runs = rows.find([done / "runs"])
    # 3 kinds of data × 2 datasets × (2 settings of the first method + 1 of the second).
    assert len(runs) == 18
    rates = {run.spec["learning_rate"] for run in runs if run.spec["spec"]["algorithm"] == "bve"}
    assert rates == {1e-3, 3e-4}  # the third setting lies beyond the scale
    assert {run.spec["config"]["lam"] for run in runs if "lam" in run.spec["config"]} == {0.5}
    assert {run.spec["data"]["keep"] for run in runs} == {0.1, 0.5}
    named = json.loads((done / "experiments" / "catch.json").read_text())["jobs"]
    assert sorted(named) == sorted(run.job for run in runs)
    assert all(run.last("final/normalised_return") is not None for run in runs)


def test_stopped_and_started_again_gives_the_same_rows(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = Path("study")
    wanted = study.recordings([CATCH], TINY)
    study.record_all(wanted[:1], out)  # the rest is recorded by the second start
    study.record_all(wanted, out)
    seen = 0

    def stop(progress: Progress) -> None:
        nonlocal seen
        seen += 1
        if seen == 7:
            raise Stopped

    with pytest.raises(Stopped):
        study.run({"catch": CATCH}, TINY, out, stop)
    assert all_rows(out) != all_rows(done)
    study.run({"catch": CATCH}, TINY, out)
    assert all_rows(out) == all_rows(done)


def test_an_unknown_scale() -> None:
    with pytest.raises(ValueError, match="unknown scale 'huge'; use quick, desk, paper"):
        study.scale_named("huge")


@pytest.mark.parametrize("name", experiments.names())
def test_every_experiment_can_be_planned(name: str) -> None:
    experiment = experiments.load(name)
    assert experiments.summary(name)
    assert experiment.paper
    if isinstance(experiment, Theory):
        return
    assert experiment.question.endswith("?")
    for scale in experiments.SCALES.values():
        assert study.recordings([experiment], scale)
        for method in experiment.methods:
            for tried in method.sweep[: scale.settings]:
                ref = study.DataRef("x")
                job = study.job(ref, experiment.data[0].env, method, tried, scale, seed=0)
                assert job.spec.steps == scale.steps


def test_an_unknown_experiment() -> None:
    with pytest.raises(ValueError, match="Did you mean 'bsuite'"):
        experiments.load("bsuit")
