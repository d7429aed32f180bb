"""A study: recordings and jobs from an experiment, shared, resumed, and the same after a stop."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rbve import rows
from rbve.data import load
from rbve.paper import experiments, results
from rbve.paper import reproduce as study
from rbve.paper.experiments import Data, Experiment, Method, Scale, Theory
from rbve.parts import DataRef
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
    # Rows name the path of their data: a relative one makes two studies comparable.
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


def test_recordings_of_another_scale_do_not_pass(done: Path) -> None:
    larger = replace(TINY, episodes=0.02)
    with pytest.raises(ValueError, match=r"holds a recording of 20 episodes, and this .* 40 epis"):
        study.record_all(study.recordings([CATCH], larger), done)
    study.record_all(study.recordings([CATCH], TINY), done)  # nothing is missing, nothing refused


def test_a_study_is_the_same_by_any_path(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = all_rows(done)
    monkeypatch.chdir(done.parent.parent)
    told: list[Progress] = []
    study.run({"catch": CATCH}, TINY, done, told.append)
    assert told == []  # nothing was trained again
    assert all_rows(done) == before


def test_jobs_are_all_combinations(done: Path) -> None:
    runs = rows.find([done / "runs"])
    # 3 kinds of data × 2 datasets × (2 settings of the first method + 1 of the second).
    assert len(runs) == 18
    rates = {run.field("learning_rate") for run in runs if run.spec["algorithm"] == "bve"}
    assert rates == {1e-3, 3e-4}  # the third setting lies beyond the scale
    assert {run.spec["settings"].get("lam", 0.5) for run in runs} == {0.5}
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
    for asked in experiments.SCALES.values():
        scale = experiment.at(asked)
        wanted = study.recordings([experiment], asked)
        seeds = {seed for data in experiment.data for seed in data.seeds(scale.datasets)}
        assert {each.seed for each in wanted} == seeds
        for method in experiment.methods:
            for tried in method.sweep[: scale.settings]:
                ref = study.DataRef("x")
                job = study.job(ref, experiment.data[0].env, method, tried, scale, seed=0)
                assert (job.steps, job.sampling.batch_size) == (scale.steps, scale.batch_size)


def recorded(out: Path, env: str, seed: int, late: float) -> None:
    """A manifest as a recording leaves it, for what is decided by it alone."""
    folder = study.Recording(env, 0.0, None, seed, 1).folder(out)
    folder.mkdir(parents=True)
    provenance = {"late_return": late, "reference": {"random": 0.5, "online": 9.0}}
    (folder / "manifest.json").write_text(json.dumps({"finished": True, "provenance": provenance}))


def test_a_game_counts_if_all_its_recorders_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "fingerprint", lambda folder: "")
    experiment = experiments.load("minatar")
    assert isinstance(experiment, Experiment)
    quick = experiments.SCALES["quick"]
    games = [data.env for data in experiment.data]
    assert len(games) >= 2
    for env in games:
        recorded(tmp_path, env, 0, late=1.5)  # three times random
        recorded(tmp_path, env, 1, late=1.49 if env == games[0] else 20.0)
    found = {job.evaluation.env for job in study.jobs(experiment, quick, tmp_path)}
    assert found == set(games[1:])
    assert study.left_out(experiment, quick, tmp_path) == {
        games[
            0
        ]: "the agent of seed 1 ended at a return of 1.49, below 3 times the random policy's 0.5"
    }
    assert (tmp_path / "data" / "minatar-breakout-0" / "0").is_dir()


def test_an_experiment_may_have_sizes_of_its_own() -> None:
    both = [experiments.load("minatar_strength"), experiments.load("ranking_strength")]
    wanted = study.recordings(both, experiments.SCALES["quick"])
    boards = [each for each in wanted if each.env.startswith("minatar:")]
    # A fifth of half a million steps, against a quarter of the paper's episodes.
    assert {each.steps for each in boards} == {100_000}
    assert {(each.env, each.episodes, each.steps) for each in wanted if each not in boards} == {
        ("catch", 500, 0),
        ("cartpole", 250, 0),
        ("mountain_car", 125, 0),
    }


def test_an_unknown_experiment() -> None:
    with pytest.raises(ValueError, match="Did you mean 'bsuite'"):
        experiments.load("bsuit")


def test_other_levels_of_noise_replace_an_experiments_own() -> None:
    experiment = experiments.load("bsuite")
    assert isinstance(experiment, Experiment)
    levels = (0.0, 0.1, 0.5)
    found = experiment.with_noise(levels)
    assert [(data.env, data.noise) for data in found.data] == [
        (env, noise) for env in ("catch", "cartpole", "mountain_car") for noise in levels
    ]
    assert found.methods == experiment.methods
    with pytest.raises(ValueError, match="noise is a probability from 0 to 1, not 2"):
        experiment.with_noise((0, 2))


@pytest.mark.parametrize(("period", "wanted"), [(0, 5), (7, 7)])
def test_a_scale_may_say_how_long_the_target_stands(period: int, wanted: int) -> None:
    scale = replace(experiments.SCALES["quick"], steps=4_000, target_period=period)
    made = study.job(DataRef("data"), "catch", Method("bve"), {}, scale, seed=0)
    assert made.optimiser.target_period == wanted


def test_what_is_packed_is_neither_recorded_nor_trained_again(
    done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "packed"
    results.pack([done], packed)
    kept = results.kept(packed)
    monkeypatch.chdir(tmp_path)
    out = Path("study")
    assert study.recordings([CATCH], TINY, out, kept) == []
    assert study.run({"catch": CATCH}, TINY, out, kept=kept) == []
    assert results.listed([out]) == results.listed([done])

    # One run is missing: its recording, and those it builds on, are needed again.
    lost = next(run for run in rows.find([done]) if run.spec["data"]["path"].endswith("0.25/1"))
    kept = kept._replace(finished=kept.finished - {lost.job})
    wanted = study.recordings([CATCH], TINY, out, kept)
    assert [(each.expert, each.seed) for each in wanted] == [(None, 1), (0.25, 1)]
    mine = [job.id for job in study.jobs(CATCH, TINY, out, kept)]
    assert lost.job in mine
    assert len(mine) == 18


def test_packed_runs_of_another_scale_spare_nothing(done: Path, tmp_path: Path) -> None:
    results.pack([done], tmp_path)
    longer = replace(TINY, steps=2 * TINY.steps)
    kept = results.kept(tmp_path)
    assert len(study.recordings([CATCH], longer, tmp_path, kept)) == 4
    assert study.jobs(CATCH, longer, tmp_path, kept) == []
    with pytest.raises(ValueError, match=r"nothing: no rows.jsonl.gz; `rbve pack"):
        results.kept(tmp_path / "nothing")


def test_a_part_of_a_study(done: Path) -> None:
    everything = experiments.load("bsuite")
    assert isinstance(everything, Experiment)
    part = study.in_envs(everything, ("cartpole", "elsewhere"))
    assert {data.env for data in part.data} == {"cartpole"}
    assert study.in_envs(everything, ()) == everything
    with pytest.raises(ValueError, match="--env: pong is not among catch, cartpole, mountain_car"):
        study.in_envs(everything, ("pong",))
    jobs = study.jobs(CATCH, TINY, done)
    assert study.unfinished(jobs, study.NOTHING, ("catch",)) == jobs
    assert study.unfinished(jobs, study.NOTHING, ("cartpole",)) == []
