"""On Ray's own test cluster, three nodes on this machine: the same rows, whatever fails."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import ray_cluster
from support.cli import run
from support.failing import failing_algorithm

import rbve
from rbve.files import locked
from rbve.rows import FILE
from rbve.spec import Spec
from rbve.sweep.cluster import Cluster, Status
from rbve.sweep.run import run_jobs
from rbve.training.run import CHECKPOINT, POLICY, Progress

pytest.importorskip("ray", reason='Ray is not installed: pip install "rbve[ray]"')
SmallJob = Callable[..., Spec]
slow = pytest.mark.slow
LONG = {"steps": 20_000, "every": 1000}


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in (FILE, POLICY, CHECKPOINT)}


@pytest.fixture(scope="module")
def cluster() -> Iterator[ray_cluster.RayCluster]:
    with ray_cluster.running(3, gpus=1) as started:
        yield started


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("here", "--cluster takes local, auto or HOST:PORT; got 'here'"),
        ("ray://head:10001", "--cluster takes local, auto or HOST:PORT; got 'ray://head:10001'"),
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1 (Connection refused)"),
    ],
)
def test_an_address_that_is_none(where: str, words: str, catch_path: Path, tmp_path: Path) -> None:
    found = run("train", catch_path, "--steps", 20, "--cluster", where, "--out", tmp_path / "runs")
    assert found.code == 2
    assert words in found.err
    assert len([line for line in found.err.splitlines() if "note: " not in line]) == 1


def test_flags_of_a_cluster_alone(catch_path: Path, tmp_path: Path) -> None:
    start = ("train", catch_path, "--steps", 20, "--out", tmp_path)
    found = run(*start, "--gpus", 1)
    assert (found.code, "--gpus is of a cluster; add --cluster" in found.err) == (2, True)
    found = run(*start, "--cluster", "local", "--executor", "processes")
    assert (found.code, "'processes' is of one machine" in found.err) == (2, True)


@slow
def test_auto_without_a_cluster(
    catch_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    command = [sys.executable, "-m", "rbve.cli", "train", catch_path, "--steps", "20"]
    done = subprocess.run(
        [*command, "--cluster", "auto", "--out", tmp_path / "runs"], capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert "no Ray cluster runs here; start one with `ray start --head`" in done.stderr


@slow
def test_rows_are_equal_in_one_process_on_local_cores_and_on_ray(
    cluster: ray_cluster.RayCluster, small_job: SmallJob, tmp_path: Path
) -> None:
    """With held-out episodes, a memory, quantiles, and products so long that XLA cuts them."""
    jobs = [
        *(small_job("rbve", seed=seed) for seed in range(3)),
        small_job("bve", {"env": None, "holdout": 0.2}),
        small_job("cql", {"memory": 4, "batch_size": 4, "steps": 60, "every": 20}),
        small_job("iqn"),
        small_job("bcq", {"steps": 100}),
        small_job("rem", {"steps": 60, "every": 20, "hidden": (56, 56)}, {"heads": 200}),
    ]
    shown: list[Status] = []
    told: list[Progress] = []
    threads = run_jobs(jobs, tmp_path / "threads")
    processes = run_jobs(jobs, tmp_path / "processes", executor="processes")
    where = Cluster(cluster.address, on_status=shown.append)
    ray = run_jobs(jobs, tmp_path / "ray", told.append, cluster=where)
    for one, other, third in zip(threads, processes, ray, strict=True):
        assert contents(one) == contents(other) == contents(third)
    assert {each.job.id for each in told} == {job.id for job in jobs}
    assert len(shown[-1].nodes) == 3
    assert sorted(each.name for each in (tmp_path / "ray").iterdir()) == sorted(
        job.id for job in jobs
    )  # no scraps
    told.clear()
    assert run_jobs(jobs, tmp_path / "ray", told.append, cluster=where)
    assert told == []


@slow
def test_a_node_that_fails_costs_no_row(small_job: SmallJob, tmp_path: Path) -> None:
    jobs = [small_job("bve", LONG, seed=seed) for seed in range(6)]
    whole = run_jobs(jobs, tmp_path / "whole")
    with ray_cluster.running() as cluster:
        killed: list[int] = []

        def kill(progress: Progress) -> None:
            if progress.step >= 5000 and len(killed) < 2:
                killed.append(cluster.tell("kill"))

        shown: list[Status] = []
        out = tmp_path / "cut"
        run_jobs(jobs, out, kill, cluster=Cluster(cluster.address, on_status=shown.append))
    assert killed == [2, 1]
    for job, folder in zip(jobs, whole, strict=True):
        assert contents(out / job.id) == contents(folder)
    reasons = [json.loads(line) for line in (out / "failures.jsonl").read_text().splitlines()]
    assert reasons
    assert all(set(each["jobs"]) <= {job.id for job in jobs} for each in reasons)
    assert len(shown[-1].nodes) == 3  # that one is gone Ray may say only after the end


def command(catch_path: Path, out: Path, address: str) -> list[str]:
    plan = ["--steps", "40000", "--every", "2000", "--eval-episodes", "2", "--hidden", "8"]
    start = [sys.executable, "-m", "rbve.cli", "train", str(catch_path), "--algorithm", "bve"]
    return [*start, "--seed", "0", "1", *plan, "--out", str(out), "--cluster", address]


def wait_for_rows(out: Path, process: subprocess.Popen[Any]) -> None:
    while process.poll() is None and not list(out.glob(f"bve-*/{CHECKPOINT}")):
        time.sleep(0.05)


@slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_driver_that_ends_leaves_the_cluster_as_it_was(
    number: int, cluster: ray_cluster.RayCluster, catch_path: Path, tmp_path: Path
) -> None:
    start = command(catch_path, tmp_path / "cut", cluster.address)
    with subprocess.Popen(start, stderr=subprocess.PIPE, text=True) as process:
        wait_for_rows(tmp_path / "cut", process)
        process.send_signal(number)
        words = process.communicate(timeout=120)[1]
    assert process.returncode in (-signal.SIGKILL, 128 + number), words
    if number != signal.SIGKILL:
        assert not (tmp_path / "cut" / "bundles").exists()
        for folder in (tmp_path / "cut").glob("bve-*"):
            with locked(folder):  # no worker is left that writes it
                assert (folder / CHECKPOINT).is_file()
    done = subprocess.run(start, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    whole = [*start[:-4], "--out", str(tmp_path / "whole")]
    assert subprocess.run(whole, capture_output=True).returncode == 0
    for folder in (tmp_path / "whole").iterdir():
        assert contents(folder) == contents(tmp_path / "cut" / folder.name)


@slow
def test_tasks_go_to_nodes_with_accelerators(
    cluster: ray_cluster.RayCluster, small_job: SmallJob, tmp_path: Path
) -> None:
    shown: list[Status] = []
    jobs = [small_job("bve", LONG, seed=seed) for seed in range(2)]
    where = Cluster(cluster.address, gpus=0.5, on_status=shown.append)
    run_jobs(jobs, tmp_path, cluster=where)
    busy = {k for each in shown for k, node in enumerate(each.nodes) if node.tasks}
    assert len(busy) == 1  # one of three nodes has them


@slow
def test_code_that_fails_is_tried_twice_and_leaves_its_log(
    cluster: ray_cluster.RayCluster, small_job: SmallJob, tmp_path: Path
) -> None:
    file = failing_algorithm(tmp_path)
    with pytest.raises(ValueError, match=r"failed 2 times: .*no such thing.*; see .*\.log"):
        run_jobs([small_job(str(file))], tmp_path / "out", cluster=Cluster(cluster.address))
    assert len((tmp_path / "out" / "failures.jsonl").read_text().splitlines()) == 2


@slow
def test_bad_input_ends_it_in_one_line(
    cluster: ray_cluster.RayCluster, small_job: SmallJob, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"^cartpole has observations") as error:
        run_jobs(
            [small_job("bve", {"env": "cartpole"})], tmp_path, cluster=Cluster(cluster.address)
        )
    assert "\n" not in str(error.value)
    assert not (tmp_path / "bundles").exists()


def can_unshare() -> bool:
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True)
    return tried.returncode == 0


@slow
@pytest.mark.skipif(not can_unshare(), reason="a node with files of its own needs root (unshare)")
def test_a_node_without_the_data_gets_a_copy(
    small_job: SmallJob, catch_path: Path, tmp_path: Path
) -> None:
    """A node that sees another folder where the data lies, and has no core but its own."""
    cache = tmp_path / "cache"
    hide = f"mount -t tmpfs none {catch_path} && exec ray start --address=$0 --num-cpus=1 --block"
    jobs = [small_job("bve", seed=seed) for seed in range(2)]
    with ray_cluster.running(nodes=1, head_cores=0) as cluster:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        started = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", hide, cluster.address],
            env={**os.environ, "PATH": path, "XDG_CACHE_HOME": str(cache)},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            shown: list[Status] = []
            where = Cluster(cluster.address, on_status=shown.append)
            folders = run_jobs(jobs, tmp_path / "ray", cluster=where)
        finally:
            os.killpg(started.pid, signal.SIGTERM)
            started.wait()
    assert len(list((cache / "rbve" / "stores").iterdir())) == 1
    for folder, whole in zip(folders, run_jobs(jobs, tmp_path / "whole"), strict=True):
        assert contents(folder) == contents(whole)


@slow
def test_the_command_and_python_take_a_cluster(
    cluster: ray_cluster.RayCluster, catch_path: Path, tmp_path: Path
) -> None:
    """select too, whose fits stay here."""
    policy = rbve.train(
        catch_path, "bve", steps=40, hidden=(8,), out=tmp_path / "runs", cluster=cluster.address
    )
    assert policy.info["step"] == 40
    chosen = rbve.select(
        catch_path, tmp_path / "select", algorithm=("bc", "bve"), steps=60, checkpoints=1,
        fit_steps=60, hidden=(8,), cluster=cluster.address,
    )  # fmt: skip
    alone = rbve.select(
        catch_path, tmp_path / "alone", algorithm=("bc", "bve"), steps=60, checkpoints=1,
        fit_steps=60, hidden=(8,),
    )  # fmt: skip
    assert chosen.recommendation == alone.recommendation


@slow
def test_the_files_for_clusters_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as they can be tested without machines: Ray's own check, and that they are YAML."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    yaml = pytest.importorskip("yaml")
    from ray.autoscaler._private import commands

    folder = Path(rbve.__file__).parents[1] / "examples" / "cluster"
    commands.validate_config(
        commands.prepare_config(yaml.safe_load((folder / "autoscaler.yaml").read_text()))
    )
    pods = yaml.safe_load((folder / "kuberay.yaml").read_text())
    assert pods["kind"] == "RayCluster"
    assert pods["spec"]["rayVersion"] == version("ray")


def test_a_port_that_nobody_listens_on_is_told_soon(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    from rbve.sweep.connection import connected

    with (
        pytest.raises(ValueError, match=f"no Ray cluster answers at 127.0.0.1:{port}"),
        connected(f"127.0.0.1:{port}"),
    ):
        pass
