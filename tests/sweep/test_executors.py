"""Every executor gives the same runs, and what is killed or stopped goes on where it was."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cli import run
from support.failing import failing_algorithm

from rbve import rows
from rbve.data import Dataset
from rbve.files import locked
from rbve.spec import Spec
from rbve.sweep.executors import EXECUTORS, processes
from rbve.sweep.plan import Bundle
from rbve.sweep.run import run_jobs
from rbve.training.run import CHECKPOINT, POLICY, Progress

SmallJob = Callable[..., Spec]
Contents = dict[str, dict[str, bytes]]  # job -> file -> content


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in (rows.FILE, POLICY, CHECKPOINT)}


@pytest.fixture(scope="module")
def jobs(small_job: SmallJob) -> list[Spec]:
    """Two programs, one of them with two members."""
    return [small_job("bve"), small_job("bve", seed=1), small_job("rbve")]


@pytest.fixture(scope="module")
def expected(jobs: list[Spec], tmp_path_factory: pytest.TempPathFactory) -> Contents:
    folders = run_jobs(jobs, tmp_path_factory.mktemp("threads"), executor="threads")
    return {folder.name: contents(folder) for folder in folders}


# A cluster takes seconds to start; tests/sweep/test_ray.py has more of it.
OTHERS = [
    pytest.param(name, marks=[pytest.mark.slow] * (name == "ray"))
    for name in EXECUTORS.names()
    if name != "threads"
]


@pytest.mark.parametrize("name", OTHERS)
def test_runs_are_the_same_and_told_alike(
    name: str,
    jobs: list[Spec],
    expected: Contents,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # other tests' clusters have no secret
    told: list[Progress] = []
    folders = run_jobs([*jobs, jobs[0]], tmp_path, told.append, executor=name)
    assert [folder.name for folder in folders] == [job.id for job in [*jobs, jobs[0]]]
    assert {folder.name: contents(folder) for folder in folders} == expected
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(expected)  # no scraps
    for job in jobs:
        steps = [each.step for each in told if each.job == job]
        assert steps == [70, 140, 210, 280, 300]
    assert all("return" in each.metrics for each in told)
    told.clear()
    assert run_jobs(jobs, tmp_path, told.append, executor=name)
    assert told == []  # finished ones are kept


def test_a_killed_worker_is_told_and_the_rest_finishes(
    small_job: SmallJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [small_job("bve", {"steps": 3000, "every": 300}), small_job("rbve")]
    whole = contents(run_jobs(jobs[:1], tmp_path / "whole")[0])
    killed: list[int] = []
    workers: list[processes._Worker] = []
    start = processes._Worker.__init__

    def keep(self: processes._Worker, bundle: Bundle, out: Path) -> None:
        start(self, bundle, out)
        workers.append(self)

    monkeypatch.setattr(processes._Worker, "__init__", keep)

    def kill(progress: Progress) -> None:
        if progress.job == jobs[0] and progress.step == 600 and not killed:
            (worker,) = (each for each in workers if jobs[0] in each.bundle.jobs)
            worker.process.kill()
            killed.append(worker.process.pid)

    out = tmp_path / "cut"
    with pytest.raises(ValueError, match="all other runs are trained; the worker of bve-") as error:
        run_jobs(jobs, out, kill, executor="processes")
    assert "was ended by SIGKILL (out of memory?); run the same command again" in str(error.value)
    assert "\n" not in str(error.value)
    assert killed
    assert (out / jobs[1].id / POLICY).is_file()
    assert not (out / jobs[0].id / POLICY).exists()
    told: list[Progress] = []
    run_jobs(jobs, out, told.append, executor="processes")
    assert contents(out / jobs[0].id) == whole
    assert min(each.step for each in told) > 300  # it went on


class Stop(Exception):
    pass


def test_stopping_asks_workers_to_save(small_job: SmallJob, tmp_path: Path) -> None:
    job = small_job("bve", {"steps": 200_000, "every": 1000})

    def stop(progress: Progress) -> None:
        raise Stop

    with pytest.raises(Stop):
        run_jobs([job], tmp_path, stop, executor="processes")
    assert [each.name for each in tmp_path.iterdir()] == [job.id]
    with locked(tmp_path / job.id):  # no worker is left that writes it
        assert (tmp_path / job.id / CHECKPOINT).is_file()


def test_an_error_in_a_worker_is_one_line(small_job: SmallJob, tmp_path: Path) -> None:
    job = small_job("bve", {"env": "cartpole"})
    with pytest.raises(ValueError, match=r"^cartpole has observations") as error:
        run_jobs([job], tmp_path, executor="processes")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "bundles").exists()


def test_code_that_fails_in_a_worker_leaves_its_log(small_job: SmallJob, tmp_path: Path) -> None:
    file = failing_algorithm(tmp_path)
    with pytest.raises(ValueError, match=r"failed: LookupError: .*no such thing.*; see .*\.log"):
        run_jobs([small_job(str(file))], tmp_path / "out", executor="processes")
    (log,) = (tmp_path / "out" / "bundles").glob("*.log")
    assert "Traceback" in log.read_text()


def test_data_in_memory_stays_in_this_process(
    small_job: SmallJob, catch: Dataset, tmp_path: Path
) -> None:
    job = small_job("bve")
    with pytest.raises(ValueError, match="'processes' works in other processes, which cannot read"):
        run_jobs([job], tmp_path, datasets={job.data.path: catch}, executor="processes")


def test_an_unknown_executor(small_job: SmallJob, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown executor 'process'. Did you mean 'processes'?"):
        run_jobs([small_job("bve")], tmp_path, executor="process")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{}", "jobs is missing"),
        ('{"jobs": [], "devices": 1}', "without jobs"),
        ('{"jobs": [{"x": 1}], "devices": 1}', "not a bundle of jobs of this version"),
        ("no json", "bundle.json"),
    ],
)
def test_a_file_that_is_no_bundle(content: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "bundle.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=words):
        Bundle.read(file)


def test_a_bundle_is_a_file_for_a_worker(
    jobs: list[Spec], expected: Contents, tmp_path: Path
) -> None:
    """What an executor on another machine does."""
    file = Bundle(tuple(jobs[:2])).write(tmp_path)
    assert Bundle.read(file) == Bundle(tuple(jobs[:2]))
    command = [sys.executable, "-m", "rbve.sweep.worker", file, tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    for job in jobs[:2]:
        assert contents(tmp_path / "out" / job.id) == expected[job.id]
    lines = [json.loads(line) for line in file.with_suffix(".progress").read_text().splitlines()]
    assert {line["job"] for line in lines if "job" in line} == {job.id for job in jobs[:2]}


def test_a_worker_whose_parent_dies_saves_and_ends(small_job: SmallJob, tmp_path: Path) -> None:
    job = small_job("bve", {"steps": 500_000, "every": 2000})
    file = Bundle((job,)).write(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-m", "rbve.sweep.worker", file, tmp_path / "out", "--until-eof"],
        stdin=subprocess.PIPE,
    ) as process:
        progress = file.with_suffix(".progress")
        while process.poll() is None and not (progress.exists() and progress.stat().st_size):
            time.sleep(0.02)
        assert process.stdin is not None
        process.stdin.close()  # as the end of its parent does
        assert process.wait(timeout=60) == 143
    assert (tmp_path / "out" / job.id / CHECKPOINT).is_file()


def test_the_command_takes_an_executor(catch_path: Path, tmp_path: Path) -> None:
    plan = ("--steps", 60, "--eval-episodes", 2, "--batch-size", 16, "--hidden", 8)
    command = ("train", catch_path, "--algorithm", "bve", *plan)
    for name in ("threads", "processes"):
        found = run(*command, "--executor", name, "--out", tmp_path / name)
        assert found.code == 0, found.err
    (one,), (other,) = ((tmp_path / name).glob("bve-*") for name in ("threads", "processes"))
    assert contents(one) == contents(other)
    found = run(*command, "--executor", "ray9", "--out", tmp_path / "none")
    assert found.code == 2
    assert "unknown executor 'ray9'" in found.err


def test_a_signal_stops_the_command_and_its_workers(catch_path: Path, tmp_path: Path) -> None:
    plan = ("--steps", "400000", "--every", "2000", "--eval-episodes", "2", "--hidden", "8")
    command = [sys.executable, "-m", "rbve.cli", "train", catch_path, "--algorithm", "bve", *plan]
    with subprocess.Popen(
        [*command, "--executor", "processes", "--out", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while process.poll() is None and not list(tmp_path.glob(f"bve-*/{CHECKPOINT}")):
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, words = process.communicate(timeout=120)
    assert process.returncode == 143, words
    (line,) = (each for each in words.splitlines() if not each.startswith("note: "))
    assert line.startswith("rbve: terminated; what was finished is kept; run the same command")
    assert not (tmp_path / "bundles").exists()
    (folder,) = tmp_path.glob("bve-*")
    with locked(folder):  # no worker is left that writes it
        assert (folder / CHECKPOINT).is_file()
