"""A sweep through Ray against independent processes, and a plan beyond this machine.

python benchmarks/cluster.py [--members 8] [--steps 40000] [--rounds 3] [--out cluster.json]

Both sides train the same members on the same cores, start-up of the processes included; the cluster
is up before. By wall time, so it takes a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import data
from run import show
from timing import Figure, Lap, interleave, ratio

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import ray_cluster

from rbve.spec import Spec
from rbve.sweep import child, copies, executors
from rbve.sweep.cluster import Cluster
from rbve.sweep.packing import Queue
from rbve.sweep.plan import Bundle, Stores, bundles
from rbve.sweep.run import run_jobs
from rbve.training.run import is_finished

NODES, CORES, MEMBERS = 100, 16, 10_000  # of the plan; nodes with so many cores each
UPDATES = 100_000  # of a member there
PRICE = 0.04  # assumed, of a core for an hour, in dollars


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--steps", type=int, default=40_000, help="updates of each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as scratch, ray_cluster.running(len(cores)) as cluster:
        folder = Path(scratch)
        path = data.record(folder)
        jobs = [
            Spec.of(
                path=str(path), algorithm="rbve", steps=arguments.steps, seed=seed, env=None,
                every=arguments.steps // 5, holdout=0.0,
            ).resolved()
            for seed in range(arguments.members)
        ]  # fmt: skip
        efficiency, seconds = sweep(jobs, folder, cluster, cores, arguments.rounds)
        measured = [*efficiency, *(tasks := task(path, folder, cluster))]
        measured += (known := constants(jobs, folder, path))
        show("cluster", measured)
        show(f"on paper: {NODES} nodes of {CORES} cores", planned := plan(seconds, tasks, known))
    if arguments.out:
        figures = [figure._asdict() for figure in [*measured, *planned]]
        arguments.out.write_text(json.dumps(figures, indent=1))


def sweep(
    jobs: Sequence[Spec],
    folder: Path,
    cluster: ray_cluster.RayCluster,
    cores: Sequence[int],
    rounds: int,
) -> tuple[list[Figure], float]:
    """Its efficiency, and the seconds of CPU that an update takes."""
    count = iter(range(1000))
    laps = interleave(
        {
            "processes": lambda: apart(jobs, folder / f"apart-{next(count)}", cores),
            "ray": lambda: together(jobs, folder / f"ray-{next(count)}", cluster),
        },
        rounds,
    )
    wall = ratio(laps["processes"], laps["ray"]).wall
    name = f"{len(jobs)} members through Ray / {len(cores)} independent processes"
    figures = [
        Figure("cluster", f"{name}, by wall time", 100 * wall, "%", f"median of {rounds}"),
    ]
    updates = sum(job.steps for job in jobs)
    return figures, min(lap.cpu for lap in laps["processes"]) / updates


def apart(jobs: Sequence[Spec], out: Path, cores: Sequence[int]) -> Lap:
    """Each core a process with its share of the members."""
    began, before = time.perf_counter(), os.times()
    running = []
    for k, core in enumerate(cores):
        file = Bundle(tuple(jobs[k :: len(cores)])).write(out / "bundles")
        command = ["taskset", "-c", str(core), sys.executable, "-m", "rbve.sweep.worker", file, out]
        running.append(subprocess.Popen(command))
    for process in running:
        if process.wait():
            raise SystemExit(f"a worker ended with code {process.returncode}")
    after = os.times()
    cpu = after.children_user + after.children_system
    return Lap(time.perf_counter() - began, cpu - before.children_user - before.children_system)


def together(jobs: Sequence[Spec], out: Path, cluster: ray_cluster.RayCluster) -> Lap:
    return Lap(timed(lambda: run_jobs(jobs, out, cluster=Cluster(cluster.address))), 1.0)


def task(path: Path, folder: Path, cluster: ray_cluster.RayCluster) -> list[Figure]:
    """What a task costs beside its work: members of one update, in a task each or in one."""
    plan: dict[str, Any] = {"steps": 1, "every": 1, "env": None, "holdout": 0.0}
    where, executor = Cluster(cluster.address), executors.EXECUTORS.load("ray")
    usual = executor.Queue
    walls: dict[str, list[float]] = {"one": [], "each": []}
    members = 8
    for lap in range(2):  # the first compiles
        for name, seconds in (("one", 1e9), ("each", 0.0)):
            own = {"seed": 100 * lap, **plan}
            jobs = [
                Spec.of(path=str(path), algorithm="bve", **{**own, "seed": own["seed"] + k})
                for k in range(members)
            ]
            executor.Queue = functools.partial(Queue, task=seconds)  # type: ignore[attr-defined]
            walls[name].append(
                timed(
                    lambda jobs=jobs, n=name, k=lap: run_jobs(
                        jobs, folder / f"{n}{k}", cluster=where
                    )
                )
            )
    executor.Queue = usual  # type: ignore[attr-defined]
    overhead = (walls["each"][-1] - walls["one"][-1]) / (members / len(os.sched_getaffinity(0)) - 1)
    note = f"a task of 180 s loses {100 * overhead / 180:.1f}%"
    return [Figure("cluster", "start and end of a task", overhead, "s", note)]


def constants(jobs: Sequence[Spec], folder: Path, path: Path) -> list[Figure]:
    """What the driver does for each member, and what a member leaves."""
    many = [jobs[0].varied(seed=seed) for seed in range(500)]
    planning = timed(lambda: bundles(many, folder / "none", Stores(), 1)) / len(many)
    done = next(folder.glob("ray-*")) / jobs[0].id
    finished = timed(lambda: [is_finished(done) for _ in range(50)]) / 50
    file = folder / "followed.json"
    follower = child.Follower(file)
    follow = timed(lambda: [follower.lines() for _ in range(2000)]) / 2000
    size = sum(each.stat().st_size for each in done.iterdir())
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    mark, sent = copies.mark_of(path), sum(len(piece) for _, piece in copies.pieces(path))

    def send() -> None:
        receiver = copies.Receiver(mark)
        for piece in copies.pieces(path):
            receiver.write(*piece)
        receiver.finish()

    return [
        Figure("cluster", "planning a member", 1e3 * planning, "ms"),
        Figure("cluster", "seeing that a member is finished", 1e3 * finished, "ms"),
        Figure("cluster", "a look at a task's progress", 1e6 * follow, "µs", "local disk"),
        Figure("cluster", "what a member leaves", size / 1e3, "kB"),
        Figure("cluster", "writing and checking a copy", sent / timed(send) / 1e6, "MB/s"),
    ]  # fmt: skip


def plan(seconds: float, tasks: Sequence[Figure], known: Sequence[Figure]) -> list[Figure]:
    """10,000 members of 100,000 updates on data of 10⁹ transitions, by these constants."""
    planning, finished, follow, size, copy = (each.value for each in known)
    member = seconds * UPDATES
    packed = max(1.0, 180 / member)
    work = MEMBERS * member + MEMBERS / packed * tasks[0].value
    slots = NODES * CORES
    row = 1e9 * 60 / 1e9  # GB: 10 numbers, action, reward and flags a transition
    return [
        Figure("plan", "work", work / 3600, "core-hours", f"{member:.0f} s a member"),
        Figure("plan", "time", work / slots / 60, "minutes", "if all cores are busy"),
        Figure("plan", "price", work / 3600 * PRICE, "$", f"assumed {PRICE} $ a core-hour"),
        Figure("plan", "planning, in the driver alone", MEMBERS * planning / 1e3, "s"),
        Figure("plan", "planning again after a fault", MEMBERS * (planning + finished) / 1e3, "s"),
        Figure("plan", "a look at all tasks", 2 * slots * follow / 1e6, "s", "local disk"),
        Figure("plan", "the same at 1 ms a look", 2 * slots * 1e-3, "s", "a file server"),
        Figure("plan", "what all members leave", MEMBERS * size / 1e6, "GB"),
        Figure("plan", "the data, 60 bytes a transition", row, "GB"),
        Figure("plan", "copying it to all nodes", NODES * row * 1e3 / copy / 3600, "hours",
               "one after another, as the driver does it"),
    ]  # fmt: skip


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
