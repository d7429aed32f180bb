"""Worker: DDQN with memory as `rbve train` learns it, without the files it writes in between."""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any

from workers import serve

from rbve import backend

backend.prepare()

import jax  # noqa: E402

from rbve.data import Dataset, load  # noqa: E402
from rbve.spec import Spec  # noqa: E402
from rbve.training.run import MemberRun, advancing, table_for, team  # noqa: E402
from rbve.training.update import make_program, whole  # noqa: E402

FOREVER = 10**6  # updates of a run that laps are taken from


def prepare(path: str) -> Callable[..., dict[str, Any]]:
    data = load(path)
    runs_of = functools.cache(functools.partial(begin, path, data))

    def answer(units: int, batch: int, updates: int, runs: int, devices: int = 1) -> dict[str, Any]:
        return lap(runs_of(units, batch, runs, devices), updates)

    return answer


class Run:
    """One run on devices of its own, from `device` on, past its first update, for which its program
    is compiled."""

    def __init__(self, job: Spec, data: Dataset, device: jax.Device, devices: int) -> None:
        self.device, self.steps = device, 0
        spec = job
        with jax.default_device(device), ExitStack() as stack:
            out = stack.enter_context(tempfile.TemporaryDirectory())
            group, table = team(devices, spec.sampling.batch_size), table_for(spec, [data])
            split = group.split if devices > 1 else whole
            program = make_program(spec, group.sharing(table.items), split)
            member = MemberRun(job, data, Path(out), program, table, 0)
            self.member = member
            self.advance = stack.enter_context(advancing(program, [member], table, group))
            self.open = stack.pop_all()
        self.learn(1)

    def learn(self, updates: int) -> None:
        self.steps += updates
        with jax.default_device(self.device):
            self.advance([self.member], self.steps)


def begin(path: str, data: Dataset, units: int, batch: int, runs: int, devices: int) -> list[Run]:
    base = Spec.of(
        path=path,
        target_period=400,
        algorithm="dqn",
        memory=units,
        hidden=(units,),
        batch_size=batch,
        n_step=5,
        gamma=0.997,
        steps=FOREVER,
        every=FOREVER,
    ).resolved()
    jobs = [base.varied(seed=seed) for seed in range(runs)]
    first = jax.local_devices()[:runs]
    return [Run(job, data, device, devices) for job, device in zip(jobs, first, strict=True)]


def lap(runs: list[Run], updates: int) -> dict[str, Any]:
    """Updates per second, of all runs together; none begins before all are there."""
    together = Barrier(len(runs))

    def learn(run: Run) -> float:
        together.wait()
        start = time.perf_counter()
        run.learn(updates)
        return updates / (time.perf_counter() - start)

    cpu = time.process_time()
    with ThreadPoolExecutor(len(runs)) as pool:
        rate = sum(pool.map(learn, runs))
    return {"rate": rate, "cpu_rate": len(runs) * updates / (time.process_time() - cpu)}


if __name__ == "__main__":
    serve(prepare)
