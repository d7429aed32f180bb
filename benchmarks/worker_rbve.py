"""Worker: trains as `rbve train` does, with metrics, evaluations and checkpoints on.

The rate counts updates between the end of the first interval and the end of the last, so start-up
and compilation are apart.
"""

from __future__ import annotations

import functools
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from workers import serve

from rbve import backend

backend.prepare()

from rbve.data import load  # noqa: E402
from rbve.spec import Spec  # noqa: E402
from rbve.sweep.run import run_jobs  # noqa: E402
from rbve.training.run import Progress  # noqa: E402


class Mark(NamedTuple):
    """A member reached the end of an interval."""

    step: int
    wall: float
    cpu: float


def prepare(path: str) -> Callable[..., dict[str, Any]]:
    return functools.partial(train, path, {path: load(path)})


def train(
    path: str,
    datasets: dict[str, Any],
    algorithm: str,
    steps: int,
    every: int,
    seeds: int = 1,
    learning_rates: Sequence[float] = (3e-4,),
) -> dict[str, Any]:
    base = Spec.of(algorithm=algorithm, path=path, steps=steps, every=every, env="cartpole")
    # Syncs as often as in a run of the default length.
    jobs = [
        base.varied(learning_rate=rate, target_period=125, seed=seed)
        for rate in learning_rates
        for seed in range(seeds)
    ]
    marks: dict[int, list[Mark]] = defaultdict(list)  # by thread: there is one per device

    def note(progress: Progress) -> None:
        mark = Mark(progress.step, time.perf_counter(), time.process_time())
        marks[threading.get_ident()].append(mark)

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        run_jobs(jobs, Path(out), note, datasets)
    return steady(list(marks.values())) | {
        "first_interval": min(device[0].wall for device in marks.values()) - start
    }


def steady(devices: list[list[Mark]]) -> dict[str, float]:
    """Updates per second while every device was at work, past its first interval."""
    curves = []
    for marks in devices:
        ends = {mark.step: mark for mark in marks}  # the last member to reach a step
        members = sum(mark.step == marks[0].step for mark in marks)
        curves.append([(mark.wall, members * mark.step) for mark in ends.values()])
    window = [max(curve[0][0] for curve in curves), min(curve[-1][0] for curve in curves)]
    updates = sum(np.diff(np.interp(window, *zip(*curve, strict=True)))[0] for curve in curves)
    clock = sorted((mark.wall, mark.cpu) for marks in devices for mark in marks)
    cpu = np.diff(np.interp(window, *zip(*clock, strict=True)))[0]
    return {"rate": updates / (window[1] - window[0]), "cpu_rate": updates / cpu}


if __name__ == "__main__":
    serve(prepare)
