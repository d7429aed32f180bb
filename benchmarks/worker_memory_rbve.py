"""Worker: DDQN with memory as `rbve train` learns it, without the files it writes in between."""

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

import jax  # noqa: E402

from rbve.data import Dataset, load  # noqa: E402
from rbve.sweep.local import on_all_devices  # noqa: E402
from rbve.training.parallel import team  # noqa: E402
from rbve.training.run import MemberRun, advancing, table_for  # noqa: E402
from rbve.training.spec import DataRef, Job, Spec, resolve  # noqa: E402
from rbve.training.update import make_program  # noqa: E402


def prepare(path: str) -> Callable[..., dict[str, Any]]:
    return functools.partial(train, path, load(path))


def train(
    path: str, data: Dataset, units: int, batch: int, updates: int, runs: int
) -> dict[str, Any]:
    """Updates per second of all runs after their first, for which the program is compiled.

    CPU time means something of one run only: others may compile while the first is measured.
    """
    plan = Spec(
        algorithm="dqn",
        memory=units,
        hidden=(units,),
        batch_size=batch,
        n_step=5,
        gamma=0.997,
        steps=1 + updates,
        every=1 + updates,
    )
    spec, config = resolve(plan, {})
    rates: list[float] = []
    cpu_rates: list[float] = []

    def learn(job: Job) -> None:
        group, table = team(1, batch), table_for(spec, [data])
        program = make_program(spec, table.layout)
        member = MemberRun(job, data, Path(out) / job.id, program, table, 0)
        with advancing(program, [member], table, group) as advance:
            ((state, _),) = jax.block_until_ready(advance([member.state], [member.inputs], 1))
            wall, cpu = time.perf_counter(), time.process_time()
            jax.block_until_ready(advance([state], [member.inputs], spec.steps))
            rates.append(updates / (time.perf_counter() - wall))
            cpu_rates.append(updates / (time.process_time() - cpu))

    jobs = [Job(DataRef(path), spec, config, target_period=400, seed=seed) for seed in range(runs)]
    with tempfile.TemporaryDirectory() as out:
        on_all_devices(learn, jobs)
    return {"rate": sum(rates), "cpu_rate": cpu_rates[0]}


if __name__ == "__main__":
    serve(prepare)
