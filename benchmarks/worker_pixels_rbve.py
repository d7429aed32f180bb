"""Worker: DDQN on pixels as `rbve train` does it, or only the picking of its batches."""

from __future__ import annotations

import functools
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from workers import serve

from rbve import backend

backend.prepare()

from rbve.data import load  # noqa: E402
from rbve.spec import Spec  # noqa: E402
from rbve.sweep.run import run_jobs  # noqa: E402
from rbve.training.batches.table import transition_table  # noqa: E402
from rbve.training.run import Progress  # noqa: E402

STACK = 4


def prepare(path: str) -> Callable[..., dict[str, Any]]:
    return functools.partial(answer, path)


def answer(path: str, what: str, batch: int, updates: int) -> dict[str, Any]:
    return (train if what == "train" else pick)(path, batch, updates)


def train(path: str, batch: int, updates: int) -> dict[str, Any]:
    """Updates per second after the first interval, in which programs are compiled."""
    job = Spec.of(
        holdout=0.0,
        path=path,
        target_period=125,
        algorithm="dqn",
        torso="atari_valid",  # d3rlpy's encoder pads nothing
        stack=STACK,
        batch_size=batch,
        steps=2 * updates,
        every=updates,
    )
    marks: list[tuple[float, float]] = []
    waits: list[float] = []

    def note(progress: Progress) -> None:
        marks.append((time.perf_counter(), time.process_time()))
        waits.append(progress.metrics["wait_share"])

    with tempfile.TemporaryDirectory() as out:
        run_jobs([job], Path(out), note, {path: load(path)})
    (wall, cpu), (later, cpu_later) = marks
    return {
        "rate": updates / (later - wall),
        "cpu_rate": updates / (cpu_later - cpu),
        "wait_share": waits[-1],
    }


def pick(path: str, batch: int, updates: int) -> dict[str, Any]:
    """Batches per second, and the same bytes copied by one call from neighbouring rows."""
    data = load(path)
    spec = Spec.of(stack=STACK).resolved()
    columns = transition_table([data], spec.view, "state", STACK, in_memory=False).columns[0]
    rng = np.random.default_rng(0)
    rows = rng.integers(0, columns.count, (updates, batch))
    frames = np.asarray(data.obs[: 2 * STACK * batch])
    copy = np.empty_like(frames)
    columns.pick(rows.reshape(-1)[:batch])
    picked, copied = [], []
    for row in rows:
        start = time.perf_counter()
        columns.pick(row)
        between = time.perf_counter()
        np.copyto(copy, frames)
        picked.append(between - start)
        copied.append(time.perf_counter() - between)
    return {"rate": 1 / statistics.median(picked), "copy_rate": 1 / statistics.median(copied)}


if __name__ == "__main__":
    serve(prepare)
