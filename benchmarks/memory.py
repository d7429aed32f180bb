"""R2D2's learner on sequences of 120 steps, batch 8, 512 units: steps per second.

Against the same network and loss in PyTorch, whose torch.nn.LSTM unrolls a batch that is there
already: nothing is drawn, moved or logged.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from d3rlpy_env import find_python
from timing import Figure, Lap, interleave, ratio
from workers import Worker, cores

from rbve.data import Dataset, Episode, write

STEPS, BATCH, FEATURES, ACTIONS = 120, 8, 128, 15
EPISODES = 200


def measure(quick: bool) -> list[Figure]:
    python = find_python()
    threads = str(len(cores()))
    every = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    updates, rounds = (10, 2) if quick else (40, 5)
    with tempfile.TemporaryDirectory() as scratch:
        store = make(Path(scratch))
        workers = {"rbve": Worker("worker_memory_rbve.py", store, environment={})}
        if python:
            workers["torch"] = Worker("worker_memory_torch.py", store, python, environment=every)

        def one(name: str) -> Lap:
            answer = workers[name].ask(updates=updates)
            return Lap(1 / answer["rate"], 1 / answer["cpu_rate"])

        laps = interleave({name: lambda name=name: one(name) for name in workers}, rounds)
        for worker in workers.values():
            worker.close()
    rate = BATCH * STEPS / min(lap.wall for lap in laps["rbve"])
    figures = [Figure("memory", "R2D2 learner: steps/s", rate, "1/s", f"batch {BATCH}")]
    if "torch" in laps:
        wall, cpu = ratio(laps["torch"], laps["rbve"])
        note = f"by CPU time {cpu:.2f}x"
        figures.append(Figure("memory", "R2D2 learner / torch.nn.LSTM", wall, "x", note))
    return figures


def make(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    episodes = [
        Episode.from_steps(
            rng.normal(size=(STEPS, FEATURES)).astype(np.float32),
            rng.integers(0, ACTIONS, STEPS - 1),
            rng.normal(size=STEPS - 1),
            False,
        )
        for _ in range(EPISODES)
    ]
    write(Dataset.from_episodes(episodes, ACTIONS), folder / "store")
    return folder / "store"


if __name__ == "__main__":
    from run import show

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    show("memory", measure(parser.parse_args().quick))
