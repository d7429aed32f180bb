"""R2D2's learner on sequences of 120 steps, batch 8, 512 units: steps per second.

Against the same network and loss in PyTorch, whose torch.nn.LSTM unrolls a batch that is there
already: nothing is drawn, moved or logged. One run has all cores, then as many runs as cores one
each, as `rbve train` runs several seeds.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from d3rlpy_env import find_python
from timing import Figure, best, interleave, ratio
from workers import Worker, ask_all, cores, per_update

from rbve.data import Dataset, Episode, write

STEPS, BATCH, FEATURES, ACTIONS = 120, 8, 128, 15
EPISODES = 200


def measure(quick: bool) -> list[Figure]:
    python = find_python()
    count = len(cores())
    every = {"OMP_NUM_THREADS": str(count), "MKL_NUM_THREADS": str(count)}
    updates, rounds = (10, 2) if quick else (40, 5)
    with tempfile.TemporaryDirectory() as scratch:
        store = make(Path(scratch))
        ours = Worker("worker_memory_rbve.py", store, environment={})
        contestants = {
            "one run": lambda: per_update([ours.ask(updates=updates, runs=1)]),
            "a run a core": lambda: per_update([ours.ask(updates=updates, runs=count)]),
        }
        workers = [ours]
        if python:
            free = Worker("worker_memory_torch.py", store, python, environment=every)
            pinned = [Worker("worker_memory_torch.py", store, python, core) for core in cores()]
            workers += [free, *pinned]
            contestants |= {
                "one torch": lambda: per_update([free.ask(updates=updates)]),
                "a torch a core": lambda: per_update(ask_all(pinned, {"updates": updates})),
            }
        laps = interleave(contestants, rounds)
        for worker in workers:
            worker.close()
    rate = BATCH * STEPS / best(laps["one run"])
    figures = [Figure("memory", "R2D2 learner: steps/s", rate, "1/s", f"batch {BATCH}")]
    if python:
        name = "R2D2 learner / torch.nn.LSTM, {}"
        wall, cpu = ratio(laps["one torch"], laps["one run"])
        note = f"by CPU time {cpu:.2f}x"
        figures.append(Figure("memory", name.format("one run on all cores"), wall, "x", note))
        wall, _ = ratio(laps["a torch a core"], laps["a run a core"])
        figures.append(Figure("memory", name.format("a run on each core"), wall, "x"))
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
