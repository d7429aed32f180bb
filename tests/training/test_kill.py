"""Whenever a sweep is killed, running it again ends with the results of one never killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from rbve import algorithms, rows
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.tensors import read_tensors
from rbve.training.run import CHECKPOINT, POLICY, is_finished

MODES = ("before rename", "after rename", "before sync", "after sync", "torn rows", "any time")

# Imports once, then forks a process for every attempt: JAX starts its threads in the child. The
# child kills itself with SIGKILL at the n-th call of what the mode names.
DRIVER = """
import json, os, signal, sys, threading
from pathlib import Path
from rbve.sweep.run import run_jobs
from rbve.spec import Spec

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def arm(mode, count):
    lock, calls = threading.Lock(), [0]
    replace, fsync = os.replace, os.fsync

    def due():
        with lock:
            calls[0] += 1
            return calls[0] == count

    def new_replace(source, target):
        if mode == "before rename" and due():
            kill()
        replace(source, target)
        if mode == "after rename" and due():
            kill()
        if mode == "any time" and calls[0] == 0:
            calls[0] = 1
            threading.Timer(count / 40, kill).start()

    def new_fsync(handle):
        if mode == "torn rows" and os.readlink(f"/proc/self/fd/{handle}").endswith("rows.jsonl"):
            if due():
                os.ftruncate(handle, os.fstat(handle).st_size - 7)
                kill()
        if mode == "before sync" and due():
            kill()
        fsync(handle)
        if mode == "after sync" and due():
            kill()

    os.replace, os.fsync = new_replace, new_fsync

out = Path(sys.argv[1])
jobs = [Spec.from_json(job) for job in json.loads(Path(sys.argv[2]).read_text())]
for line in sys.stdin:
    attempt, mode, count = json.loads(line)
    child = os.fork()
    if child == 0:
        arm(mode, count)
        first = attempt % len(jobs)
        run_jobs([*jobs[first:], *jobs[:first]], out)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks, and looks into /proc")
@pytest.mark.parametrize(
    ("names", "steps", "total"),
    [
        pytest.param(("rbve", "bc"), 300, 6, id="each mode once"),
        pytest.param(algorithms.names(), 120, 24, id="every algorithm", marks=pytest.mark.slow),
    ],
)
def test_killed_again_and_again(
    small_job: Callable[..., Spec], tmp_path: Path, names: Sequence[str], steps: int, total: int
) -> None:
    plan = {"steps": steps, "every": 10, "eval_episodes": 2}
    jobs = [small_job(name, plan, target_period=7) for name in names]
    expected = run_jobs(jobs, tmp_path / "whole")

    out, driver, listed = tmp_path / "killed", tmp_path / "driver.py", tmp_path / "jobs.json"
    driver.write_text(DRIVER)
    listed.write_text(json.dumps([job.to_json() for job in jobs]))
    log = open(tmp_path / "log", "w")  # noqa: SIM115  closed below, after the process
    rng = np.random.default_rng(0)
    kills: Counter[str] = Counter()
    interrupted = set()
    with subprocess.Popen(
        [sys.executable, str(driver), str(out), str(listed)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def attempt(number: int, mode: str, count: int) -> int:
            process.stdin.write(json.dumps([number, mode, count]) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        for number in range(total):
            mode = MODES[number % len(MODES)]
            code = attempt(number, mode, int(rng.integers(1, 7)))
            assert code == -9, (tmp_path / "log").read_text()
            kills[mode] += 1
            folders = [out / job.id for job in jobs]
            interrupted |= {f.name for f in folders if f.exists() and not is_finished(f)}
        code = attempt(total, "never", 0)
        process.stdin.close()
        assert code == 0, (tmp_path / "log").read_text()
    log.close()

    assert sum(kills.values()) == total
    assert set(kills) == set(MODES)
    assert interrupted == {job.id for job in jobs}
    for job, folder in zip(jobs, expected, strict=True):
        assert_same_results(folder, out / job.id, steps)


def assert_same_results(whole: Path, killed: Path, steps: int) -> None:
    assert (killed / rows.FILE).read_bytes() == (whole / rows.FILE).read_bytes()
    once = Counter((row.step, row.metric) for row in rows.read(killed / rows.FILE).rows)
    assert max(once.values()) == 1
    assert {step for step, _ in once} == set(range(10, steps + 1, 10))
    for name in (POLICY, CHECKPOINT):
        tensors, info = read_tensors(whole / name)
        others, other_info = read_tensors(killed / name)
        assert info == other_info
        assert tensors.keys() == others.keys()
        for key in tensors:
            np.testing.assert_array_equal(others[key], tensors[key], err_msg=f"{killed} {key}")
