"""Updates per second of whole training runs, against d3rlpy on the same data, one core each.

Ours is what `rbve train` does, with metrics, evaluations and checkpoints; d3rlpy runs its public
fit() without logging, and bare update() with its own sampling.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

import data
from d3rlpy_env import find_python
from timing import Figure, Lap, interleave, ratio
from workers import Worker, cores

RIVALS = {"dqn": "dqn", "cql": "cql", "bcq": "bcq", "rbve": "dqn"}  # R-BVE has no counterpart
NAMES = {"dqn": "DoubleDQN", "cql": "DiscreteCQL", "bcq": "DiscreteBCQ"}
EVERY = 5000  # updates between evaluations and checkpoints: the default of a 100,000 update run


def measure(quick: bool) -> list[Figure]:
    python = find_python()
    with tempfile.TemporaryDirectory() as scratch:
        path = data.record(Path(scratch))
        ours = Worker("worker_rbve.py", path, core=cores()[-1])
        theirs = (
            Worker("worker_d3rlpy.py", data.export(path), python, core=cores()[-1])
            if python
            else None
        )
        figures: list[Figure] = []
        for algorithm in RIVALS:
            figures += compare(algorithm, ours, theirs, quick)
        ours.close()
        if theirs:
            theirs.close()
    return figures


def compare(algorithm: str, ours: Worker, theirs: Worker | None, quick: bool) -> list[Figure]:
    rival = RIVALS[algorithm]
    steps, updates, rounds = (2 * EVERY, 200, 2) if quick else (6 * EVERY, 1000, 3)
    compile_times: list[float] = []

    def train() -> Lap:
        answer = ours.ask(algorithm=algorithm, steps=steps, every=EVERY)
        compile_times.append(answer["first_interval"] - EVERY / answer["rate"])
        return per_update(answer)

    contestants = {"rbve": train}
    if theirs:
        for through in ("fit", "update"):
            contestants[through] = lambda through=through: per_update(  # type: ignore[misc]
                theirs.ask(algorithm=rival, updates=updates, through=through)
            )
    laps = interleave(contestants, rounds)
    rate = 1 / statistics.median(lap.wall for lap in laps["rbve"])
    figures = [
        Figure("updates", f"{algorithm}: updates/s", rate, "1/s", "of this run only"),
        Figure(
            "updates",
            f"{algorithm}: start-up and compilation",
            compile_times[0],
            "s",
            f"{min(compile_times[1:]):.1f} s once compiled programs are cached",
        ),
    ]
    for through in list(contestants)[1:]:
        wall, cpu = ratio(laps[through], laps["rbve"])
        name = f"{algorithm} / d3rlpy {NAMES[rival]} {through}()"
        figures.append(Figure("updates", name, wall, "x", f"by CPU time {cpu:.1f}x"))
    return figures


def per_update(answer: dict[str, Any]) -> Lap:
    return Lap(1 / answer["rate"], 1 / answer["cpu_rate"])
