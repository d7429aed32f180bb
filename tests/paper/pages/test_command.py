"""The command that remakes a run gives the very same job."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import pytest
from support.studies import write_store

from rbve import cli
from rbve.paper import experiments
from rbve.paper import reproduce as study
from rbve.paper._pages.command import command, settings
from rbve.paper.experiments import Data, Experiment, Scale
from rbve.spec import Spec

TINY = Scale(datasets=2, steps=40, episodes=0.005, settings=5, evaluations=2)


class Captured(Exception):
    pass


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores where the study has them; what they hold does not matter here."""
    folder = tmp_path_factory.mktemp("commands")
    wanted = study.recordings(trained(), TINY)
    for number, each in enumerate(wanted):
        write_store(each.folder(folder / "s"), 2, number)
    return folder


def trained() -> list[Experiment]:
    """On catch."""
    found = [experiments.load(name) for name in experiments.names()]
    own = [each for each in found if isinstance(each, Experiment)]
    return [dataclasses.replace(each, data=data) for each in own if (data := on_catch(each))]


def on_catch(experiment: Experiment) -> tuple[Data, ...]:
    """Of experts one is enough: they differ in path alone."""
    every = (each for each in experiment.data if each.env == "catch")
    return tuple(each for each in every if each.expert in (None, 0.25))


def parsed(line: str, monkeypatch: pytest.MonkeyPatch) -> Spec:
    """The one job a command line asks for, read by the program's own parser."""

    def capture(members, *rest, **options):
        raise Captured(members)

    monkeypatch.setattr("rbve.sweep.run.run_jobs", capture)
    program, *arguments = shlex.split(line)
    assert program == "rbve"
    with pytest.raises(Captured) as caught:
        cli.main(arguments)
    (job,) = caught.value.args[0]
    return job


def test_every_run_of_every_experiment(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(out)
    jobs = {
        job.id: job
        for experiment in trained()
        for job in study.jobs(experiment, TINY, Path("s"))
        if job.seed == 1  # the other seed is the default of several flags
    }
    # One of each kind of data and one of each method's setting; all together take minutes.
    kinds = {
        (job.data.path, job.data.keep, job.data.side, job.data.action): job for job in jobs.values()
    }
    methods = {
        (job.program, str(job.load_config()), job.optimiser.learning_rate): job
        for job in jobs.values()
    }
    assert len(kinds) >= 10
    assert len(methods) >= 60
    for job in {**kinds, **methods}.values():
        line = command(job.to_json())
        assert parsed(line, monkeypatch).id == job.id, line


def test_every_flag(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(out)
    some = study.jobs(trained()[0], TINY, Path("s"))[0]
    job = Spec.of(
        algorithm="bcq",
        hidden=(32, 16, 8),
        rows="memory",
        batch_size=64,
        td="huber",
        gamma=0.9,
        n_step=3,
        clip_rewards=True,
        steps=300,
        every=7,
        env=None,
        eval_episodes=5,
        eval_epsilon=0.25,
        data=some.data,
        keep=0.5,
        keep_seed=4,
        side="above",
        action="executed",
        learning_rate=1e-3,
        target_period=3,
        seed=9,
        threshold=0.1,
        double="false",
    ).resolved()
    line = command(job.to_json())
    assert parsed(line, monkeypatch).id == job.id
    assert "--set threshold=0.1" in line
    assert "--set double=false" in line
    assert "logit_penalty" not in line  # it is the default


@pytest.mark.parametrize(("units", "rescale"), [(64, True), (64, False), (0, True)])
def test_with_memory(out: Path, monkeypatch: pytest.MonkeyPatch, units: int, rescale: bool) -> None:
    """What is rescaled without a word depends on the memory."""
    monkeypatch.chdir(out)
    windows = {"sequence": 10, "burn_in": 5} if units else {}
    data = study.jobs(trained()[0], TINY, Path("s"))[0].data
    own = {"memory": units, "rescale": rescale, **windows}
    job = Spec.of(algorithm="rdqn", data=data, **own).resolved()
    line = command(job.to_json())
    assert parsed(line, monkeypatch).id == job.id
    assert ("--rescale" in line) == (rescale != (units > 0))


def test_defaults_are_left_out() -> None:
    plain = Spec.of(path="my data/0", env="catch").resolved()
    assert command(plain.to_json()) == "rbve train 'my data/0' --algorithm rbve --env catch"
    assert settings(plain.to_json()) == {}
    nowhere = Spec.of(path="my data/0").resolved()
    assert command(nowhere.to_json()).endswith("--env none")
    assert command(plain.varied(env=None).to_json()).endswith("--env none --holdout 0.0")


def test_an_algorithm_that_is_not_at_hand_shows_all_its_settings() -> None:
    job = Spec.of(path="d", algorithm="gone.py", b=0.5, a=True).to_json()
    assert settings(job) == {"b": 0.5, "a": True}
    assert "--algorithm gone.py --set b=0.5 --set a=true" in command(job)
