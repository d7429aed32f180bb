"""R2D2's learner on sequences of 120 steps: steps per second.

Against the same network and loss in PyTorch, whose torch.nn.LSTM unrolls a batch that is there
already: nothing is drawn, moved or logged. One run has all cores, as one device or with its
sequences shared out (`--devices`), then as many runs as cores one each, as `rbve train` runs
several seeds. Sizes are those of the paper's learners, offline and online, and of the studies here.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from d3rlpy_env import find_python
from timing import Figure, best, interleave, ratio
from workers import Worker, ask_all, cores, per_update

from rbve.data import Dataset, Episode, write

STEPS, FEATURES, ACTIONS = 120, 128, 15
EPISODES = 200


class Size(NamedTuple):
    units: int
    batch: int
    updates: int  # of a lap, about as long for each size

    def __str__(self) -> str:
        return f"{self.units} units, batch {self.batch}"


SIZES = (Size(512, 8, 40), Size(512, 32, 20), Size(64, 8, 400))


def measure(quick: bool) -> list[Figure]:
    python = find_python()
    count = len(cores())
    every = {"OMP_NUM_THREADS": str(count), "MKL_NUM_THREADS": str(count)}
    figures = []
    with tempfile.TemporaryDirectory() as scratch:
        store = make(Path(scratch))
        ours = Worker("worker_memory_rbve.py", store, environment={})
        free, pinned = None, []
        if python:
            free = Worker("worker_memory_torch.py", store, python, environment=every)
            pinned = [Worker("worker_memory_torch.py", store, python, core) for core in cores()]
        for size in SIZES:
            figures += compare(size, ours, free, pinned, quick)
        for worker in (ours, free, *pinned):
            if worker:
                worker.close()
    return figures


def compare(
    size: Size, ours: Worker, free: Worker | None, pinned: list[Worker], quick: bool
) -> list[Figure]:
    """`free` has all cores, those `pinned` one each; neither is there without PyTorch."""
    asked = size._replace(updates=size.updates // 4 if quick else size.updates)._asdict()
    contestants = {
        "one run": lambda: per_update([ours.ask(**asked, runs=1)]),
        "a run a core": lambda: per_update([ours.ask(**asked, runs=len(cores()))]),
    }
    if shared := size.batch % len(cores()) == 0 and len(cores()) > 1:
        contestants["shared"] = lambda: per_update(
            [ours.ask(**asked, runs=1, devices=len(cores()))]
        )
    if free:
        contestants |= {
            "one torch": lambda: per_update([free.ask(**asked)]),
            "a torch a core": lambda: per_update(ask_all(pinned, asked)),
        }
    laps = interleave(contestants, 2 if quick else 5)
    rate = size.batch * STEPS / best(laps["one run"])
    figures = [Figure("memory", f"R2D2 learner, {size}: steps/s", rate, "1/s")]
    if free:
        name = f"R2D2 learner / torch.nn.LSTM, {size}, {{}}"
        wall, cpu = ratio(laps["one torch"], laps["one run"])
        note = f"by CPU time {cpu:.2f}x"
        figures.append(Figure("memory", name.format("one run on all cores"), wall, "x", note))
        if shared:
            wall, cpu = ratio(laps["one torch"], laps["shared"])
            note = f"by CPU time {cpu:.2f}x"
            figures.append(Figure("memory", name.format("one run, --devices"), wall, "x", note))
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
