"""DDQN on 84×84×4 pixels, all cores for one run: updates per second with sampling, and memory.

Against d3rlpy's pixel encoder on the same frames, and against a bare PyTorch update of the same
network on a batch that is there already. Both take frames stored once and stacked when drawn.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from d3rlpy_env import find_python
from timing import Figure, Lap, interleave, ratio
from workers import Worker, cores

from rbve.data import Dataset, Episode, write

BATCHES = (32, 256)
STEPS = 400  # per episode
FRAMES = 50_000  # 353 MB


def measure(quick: bool) -> list[Figure]:
    python = find_python()
    with tempfile.TemporaryDirectory() as scratch:
        store, arrays = make(Path(scratch), FRAMES // 10 if quick else FRAMES)
        figures = []
        for batch in BATCHES:
            figures += compare(batch, store, arrays, python, quick)
        return figures + sampling(store, quick)


def make(folder: Path, frames: int) -> tuple[Path, Path]:
    """The same random frames as a store and as plain arrays of decisions."""
    rng = np.random.default_rng(0)
    parts = [
        (
            rng.integers(0, 256, (STEPS + 1, 84, 84), np.uint8),
            rng.integers(0, 6, STEPS),
            rng.choice([-1.0, 0.0, 1.0], STEPS),
        )
        for _ in range(-(-frames // STEPS))
    ]
    episodes = [Episode.from_steps(*part, True) for part in parts]
    write(Dataset.from_episodes(episodes, 6), folder / "store")
    terminal = np.zeros(STEPS, np.float32)
    terminal[-1] = 1
    np.savez(
        folder / "arrays.npz",
        obs=np.concatenate([obs[:-1] for obs, _, _ in parts]),
        action=np.concatenate([action for _, action, _ in parts]).astype(np.int32),
        reward=np.concatenate([reward for _, _, reward in parts]).astype(np.float32),
        terminal=np.tile(terminal, len(parts)),
    )
    return folder / "store", folder / "arrays.npz"


def compare(batch: int, store: Path, arrays: Path, python: str | None, quick: bool) -> list[Figure]:
    threads = str(len(cores()))
    every = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    updates, rounds = max(6, (640 if quick else 3200) // batch), 2 if quick else 5
    workers = {"rbve": Worker("worker_pixels_rbve.py", store, environment={})}
    if python:
        for name in ("d3rlpy", "bare"):
            workers[name] = Worker("worker_pixels_d3rlpy.py", arrays, python, environment=every)
    peaks = {name: worker.watch() for name, worker in workers.items()}
    waits: list[float] = []

    def one(name: str) -> Lap:
        what = "train" if name == "rbve" else name
        answer: dict[str, Any] = workers[name].ask(what=what, batch=batch, updates=updates)
        waits.append(answer.get("wait_share", 0.0))
        return Lap(1 / answer["rate"], 1 / answer["cpu_rate"])

    laps = interleave({name: lambda name=name: one(name) for name in workers}, rounds)
    peak = {name: tell() for name, tell in peaks.items()}
    for worker in workers.values():
        worker.close()
    rate = 1 / min(lap.wall for lap in laps["rbve"])
    note = f"{max(waits):.0%} of the time waiting for batches"
    figures = [Figure("pixels", f"batch {batch}: updates/s", rate, "1/s", note)]
    for name, words in (("d3rlpy", "d3rlpy DoubleDQN"), ("bare", "bare PyTorch update")):
        if name in laps:
            wall, cpu = ratio(laps[name], laps["rbve"])
            figures.append(
                Figure("pixels", f"batch {batch} / {words}", wall, "x", f"by CPU time {cpu:.2f}x")
            )
    held = f"d3rlpy {peak['d3rlpy'] / 1e9:.2f} GB" if "d3rlpy" in peak else ""
    figures.append(
        Figure("pixels", f"batch {batch}: peak memory of its own", peak["rbve"] / 1e9, "GB", held)
    )
    return figures


def sampling(store: Path, quick: bool) -> list[Figure]:
    worker = Worker("worker_pixels_rbve.py", store, core=cores()[-1])
    figures = []
    for batch in BATCHES:
        found = worker.ask(what="pick", batch=batch, updates=(6400 if quick else 64_000) // batch)
        share = 100 * found["rate"] / found["copy_rate"]
        note = f"{found['rate']:,.0f} batches/s"
        figures.append(
            Figure("pixels", f"batch {batch}: sampling, of the copy bound", share, "%", note)
        )
    worker.close()
    return figures


if __name__ == "__main__":
    from run import show

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    show("pixels", measure(parser.parse_args().quick))
