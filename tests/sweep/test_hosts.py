"""Two processes that share a run, as two machines would: jax.distributed on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support.cli import run
from support.ports import free_port
from support.recordings import record_policy

from rbve import rows
from rbve.sweep.hosts import Hosts
from rbve.tensors import read_tensors
from rbve.training.run import CHECKPOINT

PLAN = ("--algorithm", "rbve", "--every", "100", "--eval-episodes", "2", "--env", "none")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("catch") / "data"
    record_policy("catch", out, None, episodes=40)
    return out


def begin(store: Path, outs: Sequence[Path], steps: int) -> list[subprocess.Popen[str]]:
    """A process for each place."""
    command = [sys.executable, "-m", "rbve.cli", "train", str(store), *PLAN]
    command += ["--steps", str(steps), "--devices", "2"]
    address = f"127.0.0.1:{free_port()}"
    return [
        subprocess.Popen(
            [*command, "--out", str(out), "--hosts", f"{address},2,{number}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for number, out in enumerate(outs)
    ]


def ended(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:
        _, told = process.communicate(timeout=300)
        assert process.returncode == 0, told


def alone(store: Path, out: Path, steps: int) -> Path:
    done = run("train", store, "--out", out, *PLAN, "--steps", steps, "--devices", 2)
    assert done.code == 0, done.err
    (folder,) = out.iterdir()
    return folder


@pytest.mark.slow
def test_two_commands_make_the_run_of_one(store: Path, tmp_path: Path) -> None:
    whole = alone(store, tmp_path / "one", 200)
    ended(begin(store, [tmp_path / "two"] * 2, 200))
    (folder,) = (tmp_path / "two").iterdir()
    assert folder.name == whole.name
    one, two = (read_tensors(each / CHECKPOINT)[0] for each in (whole, folder))
    assert one.keys() == two.keys()
    for name, value in one.items():
        np.testing.assert_allclose(two[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
    steps = {row.step for row in rows.find([folder])[0].rows}
    assert steps == {row.step for row in rows.find([whole])[0].rows}


@pytest.mark.slow
def test_after_one_process_was_killed_both_go_on(store: Path, tmp_path: Path) -> None:
    out, long = tmp_path / "two", 1_000_000
    steps = []
    for _ in range(2):
        processes = begin(store, [out] * 2, long)
        before = len(steps)
        while len(steps) == before:
            assert all(process.poll() is None for process in processes)
            time.sleep(0.1)
            for file in out.glob(f"*/{CHECKPOINT}"):
                step = read_tensors(file)[1]["step"]
                steps += [step] if step > max(steps, default=0) else []
        processes[1].kill()
        processes[1].communicate()
        _, told = processes[0].communicate(timeout=300)
        assert processes[0].returncode == 2
        assert "another process of --hosts has ended; start the same command" in told
    assert steps[1] > steps[0]


@pytest.mark.slow
def test_a_process_that_does_not_see_the_others_checkpoints_is_told(
    store: Path, tmp_path: Path
) -> None:
    out = tmp_path / "two"
    ended(begin(store, [out] * 2, 200))
    for process in begin(store, [out, tmp_path / "elsewhere"], 200):
        _, told = process.communicate(timeout=300)
        assert process.returncode == 2
        assert "process 1 has other runs or checkpoints than process 0" in told


def test_hosts_go_with_no_other_way_to_train(store: Path, tmp_path: Path) -> None:
    plan = ("--steps", 200, "--devices", 2, "--hosts", "127.0.0.1:7000,2,0", "--executor")
    done = run("train", store, "--out", tmp_path, *PLAN, *plan, "processes")
    assert done.code == 2
    assert "leave --cluster and --executor out" in done.err


@pytest.mark.parametrize("text", ["10.0.0.1:7000", "10.0.0.1,2,0", "host:1,2,2", "host:1,0,0", ""])
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="--hosts is HOST:PORT,COUNT,INDEX"):
        Hosts.read(text)


def test_devices_are_those_of_all() -> None:
    with pytest.raises(ValueError, match="--devices 3 cannot be shared by 2 processes"):
        Hosts.read("127.0.0.1:7000,2,1").join(3)
    with pytest.raises(ValueError, match="cannot be shared"):
        Hosts.read("127.0.0.1:7000,1,0").join(1)
