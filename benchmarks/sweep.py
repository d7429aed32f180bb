"""A sweep of ten members over all cores, against one run on one core.

The bound is what one separate process per core reaches, each with a run of its own.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import data
from timing import Figure, interleave, ratio
from workers import Worker, ask_all, cores, per_update

SWEEP = {"seeds": 5, "learning_rates": (1e-4, 3e-4)}


def measure(quick: bool) -> list[Figure]:
    plan: dict[str, Any] = {"algorithm": "rbve", "steps": 6000, "every": 1500}
    plan = plan if quick else {**plan, "steps": 30_000, "every": 5000}
    with tempfile.TemporaryDirectory() as scratch:
        path = data.record(Path(scratch))
        pinned = [Worker("worker_rbve.py", path, core=core) for core in cores()]
        free = Worker("worker_rbve.py", path)
        laps = interleave(
            {
                "one": lambda: per_update([pinned[0].ask(**plan)]),
                "sweep": lambda: per_update([free.ask(**plan, **SWEEP)]),
                "processes": lambda: per_update(ask_all(pinned, plan)),
            },
            rounds=1 if quick else 3,
        )
        for worker in [*pinned, free]:
            worker.close()
    count = len(cores())
    figures = []
    for name, words in [("sweep", "10-member sweep"), ("processes", f"{count} separate processes")]:
        wall, cpu = ratio(laps["one"], laps[name])
        note = f"by CPU time {cpu * count:.2f}x of {count}"
        figures.append(Figure("sweep", f"{words} / one run on one core", wall, "x", note))
    return figures
