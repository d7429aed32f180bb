"""Signals at any moment, and two commands at once: one line, an exit code, nothing lost."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.cli import run

from rbve import rows
from rbve.files import locked
from rbve.training.run import CHECKPOINT, POLICY

# Tests that run in the background of a script would hand on that SIGINT is ignored.
HEEDING = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.executable, [sys.executable, '-m', 'rbve.cli', *sys.argv[1:]])"
)
COMMAND = [sys.executable, "-c", HEEDING]
PLAN = ("--algorithm", "bve", "dqn", "--seed", "0", "1", "--steps", "50000", "--every", "25000")
SMALL = ("--eval-episodes", "4", "--batch-size", "16", "--hidden", "8")


def stopped(number: signal.Signals, after: float, *arguments: object, begun: Path) -> bool:
    """Whether the command was at work when the signal came, `after` the path had been written."""
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        await_writing(begun, process)
        time.sleep(after)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
    if process.returncode == 0:
        return False
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    assert process.returncode == 128 + number, said
    (line,) = complaints(said)
    assert line.startswith(f"rbve: {word}; what was finished is kept")
    return True


def await_writing(folder: Path, process: subprocess.Popen[str]) -> None:
    """Until the command writes there, or has ended."""
    was = written(folder)
    while written(folder) == was and process.poll() is None:
        time.sleep(0.02)


def written(folder: Path) -> float:
    """When anything below it was last written; 0 where nothing is."""
    times = [0.0]
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):
            times.append(file.stat().st_mtime)
    return max(times)


def test_stopping_leaves_the_teardown_out(tmp_path: Path) -> None:
    """A signal during compilation leaves objects of JAX that crash when they are freed."""
    crashing = "import atexit, os; atexit.register(os.abort); from rbve.cli import main; main()"
    command = ("record", "cartpole", "--out", str(tmp_path / "data"))
    with subprocess.Popen(
        [sys.executable, "-c", crashing, *command], stderr=subprocess.PIPE, text=True
    ) as process:
        await_writing(tmp_path / "data", process)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 143, said
    assert said.startswith("rbve: terminated; what was finished is kept")


def complaints(said: str) -> list[str]:
    return [line for line in said.splitlines() if not line.startswith("note: ")]


def test_training_stops_and_goes_on(catch_path: Path, tmp_path: Path) -> None:
    command = ("train", catch_path, *PLAN, *SMALL, "--out")
    rng = random.Random(0)
    stops = 0
    for number in 2 * (signal.SIGINT, signal.SIGTERM):
        cut = tmp_path / "cut"
        stops += stopped(number, rng.uniform(0, 1.5), *command, cut, begun=cut)
    assert stops >= 2
    for name in ("cut", "whole"):
        found = run(*command, tmp_path / name)
        assert found.code == 0, found.err
    folders = sorted(file.parent for file in (tmp_path / "whole").glob(f"*/{POLICY}"))
    assert len(folders) == 4
    for folder in folders:
        for name in (rows.FILE, POLICY, CHECKPOINT):
            other = tmp_path / "cut" / folder.name / name
            assert (folder / name).read_bytes() == other.read_bytes(), name


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_recording_stops(number: signal.Signals, tmp_path: Path) -> None:
    command = ("record", "cartpole", "--seed", 0, 1, "--out", tmp_path / "data")
    assert stopped(number, 0.5, *command, begun=tmp_path / "data")


def test_a_run_has_one_writer(catch_path: Path, tmp_path: Path) -> None:
    command = ("train", catch_path, "--algorithm", "bve", "--steps", "20", *SMALL, "--out")
    assert run(*command, tmp_path / "first").code == 0
    (job,) = (file.parent.name for file in (tmp_path / "first").glob(f"*/{POLICY}"))
    with locked(tmp_path / "second" / job):
        found = run(*command, tmp_path / "second")
    assert found.code == 2
    (line,) = complaints(found.err)
    assert f"{job}: is being written by another process" in line
    assert run(*command, tmp_path / "second").code == 0
    with locked(tmp_path / "second" / job / rows.EVALUATION):
        found = run("follow", tmp_path / "second", "--env", "catch", "--episodes", 2)
    assert found.code == 2
    assert f"{rows.EVALUATION}: is being written by another process" in found.err


@pytest.mark.parametrize("command", [("demo",), ("reproduce", "divergence")])
def test_a_study_has_one_writer(command: tuple[str, ...], tmp_path: Path) -> None:
    with locked(tmp_path / "study"):
        found = run(*command, "--out", tmp_path / "study")
    assert found.code == 2
    assert "study: is being written by another process" in found.err
