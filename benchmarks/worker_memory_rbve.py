"""Worker: DDQN with memory as `rbve train` does it."""

from __future__ import annotations

import functools
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workers import serve

from rbve import backend

backend.prepare()

from rbve.data import load  # noqa: E402
from rbve.sweep import local  # noqa: E402
from rbve.training.run import Progress  # noqa: E402
from rbve.training.spec import DataRef, Job, Spec, resolve  # noqa: E402


def prepare(path: str) -> Callable[..., dict[str, Any]]:
    return functools.partial(train, path)


def train(path: str, units: int, batch: int, updates: int, runs: int) -> dict[str, Any]:
    """Updates per second of all runs after their first interval, in which programs are compiled.

    CPU time means something of one run only: others may compile while the first is measured.
    """
    plan = Spec(
        algorithm="dqn",
        memory=units,
        hidden=(units,),
        batch_size=batch,
        n_step=5,
        gamma=0.997,
        steps=2 * updates,
        every=updates,
    )
    spec, config = resolve(plan, {})
    jobs = [Job(DataRef(path), spec, config, target_period=400, seed=seed) for seed in range(runs)]
    walls: dict[int, list[float]] = defaultdict(list)
    cpus: list[float] = []

    def note(progress: Progress) -> None:
        walls[progress.job.seed].append(time.perf_counter())
        cpus.append(time.process_time())

    with tempfile.TemporaryDirectory() as out:
        local.run(jobs, Path(out), note, {path: load(path)})
    rate = sum(updates / (end - begin) for begin, end in walls.values())
    return {"rate": rate, "cpu_rate": runs * updates / (max(cpus) - min(cpus))}


if __name__ == "__main__":
    serve(prepare)
