"""Worker: DDQN with memory as `rbve train` does it."""

from __future__ import annotations

import functools
import tempfile
import time
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


def train(path: str, updates: int) -> dict[str, Any]:
    """Updates per second after the first interval, in which programs are compiled."""
    plan = Spec(
        algorithm="dqn",
        memory=512,
        hidden=(512,),
        batch_size=8,
        n_step=5,
        gamma=0.997,
        steps=2 * updates,
        every=updates,
    )
    spec, config = resolve(plan, {})
    job = Job(DataRef(path), spec, config, target_period=400)
    marks: list[tuple[float, float]] = []

    def note(progress: Progress) -> None:
        marks.append((time.perf_counter(), time.process_time()))

    with tempfile.TemporaryDirectory() as out:
        local.run([job], Path(out), note, {path: load(path)})
    (wall, cpu), (later, cpu_later) = marks
    return {"rate": updates / (later - wall), "cpu_rate": updates / (cpu_later - cpu)}


if __name__ == "__main__":
    serve(prepare)
