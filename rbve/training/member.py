"""One member of a program: its state, its rows and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve.data.dataset import Dataset
from rbve.data.inputs import input_shape
from rbve.evaluation.follow import POLICY as POLICY
from rbve.evaluation.follow import offer
from rbve.policy import Policy
from rbve.rows import Row, RowFile
from rbve.training.checkpoint import read_tensors, write_tensors
from rbve.training.measures import facts, final_rows, mean_metrics, normalised
from rbve.training.spec import Job, averaged
from rbve.training.stream import Stream
from rbve.training.table import Table
from rbve.training.update import Member, Program, TrainState, member_keys

CHECKPOINT = "checkpoint.safetensors"


def is_finished(folder: Path) -> bool:
    file = folder / CHECKPOINT
    return (
        (folder / POLICY).exists() and file.exists() and bool(read_tensors(file)[1].get("finished"))
    )


class MemberRun:
    """One job's state, rows and files."""

    def __init__(
        self,
        job: Job,
        dataset: Dataset,
        folder: Path,
        program: Program,
        table: Table,
        index: int,
    ) -> None:
        self.job, self.dataset, self.folder, self.program = job, dataset, folder, program
        key_weights, key_updates, self.key_evaluation = member_keys(job.seed)
        config = program.algorithm.config(**job.config)
        self.inputs = Member(
            key=key_updates,
            offset=jnp.int32(table.offset[index]),
            size=jnp.int32(table.count[index]),
            g_scale=jnp.float32(table.g_scale[index]),
            learning_rate=jnp.float32(job.learning_rate),
            target_period=jnp.int32(job.target_period),
            config=jax.tree.map(jnp.float32, config),
        )
        self.state = program.init(key_weights)
        self.step = 0
        self.finished = False
        self.stream: Stream | None = None  # where rows stay on disk
        self.evaluations: list[dict[str, tuple[float, int]]] = []
        self.facts = facts(dataset, job.spec.env, job.data)
        self.rows = RowFile(folder, job.id, job.to_json(), self.facts)
        self.resume()

    def resume(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / CHECKPOINT
        if not file.exists():
            self.rows.keep(0)
            return
        arrays, info = read_tensors(file)
        leaves, structure = jax.tree.flatten(self.state)
        loaded = [arrays.get(f"state.{k}") for k in range(len(leaves))]
        if info.get("job") != self.job.to_json() or any(leaf is None for leaf in loaded):
            raise ValueError(f"{file}: belongs to another job; choose another output folder")
        self.state = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in loaded])
        self.step, self.finished = info["step"], info["finished"]
        self.evaluations = [
            {name: (value, n) for name, (value, n) in each.items()} for each in info["evaluations"]
        ]
        self.rows.keep(info["rows"])
        if self.finished and not (self.folder / POLICY).exists():
            self.policy(self.state).save(self.folder / POLICY)

    def record(self, state: TrainState, sums: Any, evaluation: Any, until: int) -> dict[str, float]:
        """Rows of the interval that ended at `until`, then the checkpoint that counts them."""
        self.state, spec = state, self.job.spec
        diverged = int(state.diverged_at)
        updates = (diverged if diverged >= 0 else until) - self.step
        rows = [
            Row(until, f"train/{name}", value, updates)
            for name, value in mean_metrics(sums, updates).items()
        ]
        if evaluation is not None:
            measured = evaluation.summary(self.program.algorithm.values)
            measured |= normalised(measured["return"], self.facts)
            self.evaluations = [*self.evaluations, measured][-spec.final_evaluations :]
            rows += [Row(until, name, value, n) for name, (value, n) in measured.items()]
        self.step = until
        self.finished = until >= spec.steps or diverged >= 0
        if diverged >= 0:
            rows.append(Row(until, "diverged_at", float(diverged), 1))
        if self.finished:
            last = averaged(spec.steps, spec.every, spec.final_evaluations)
            rows += final_rows(until, self.evaluations[-last:])
        self.rows.append(rows)
        if self.finished:
            self.policy(state).save(self.folder / POLICY)
        self.save()
        offer(self.folder, self.policy(state), until)
        return {row.metric: row.value for row in rows}

    def save(self) -> None:
        leaves = jax.tree.leaves(self.state)
        write_tensors(
            self.folder / CHECKPOINT,
            {f"state.{k}": np.asarray(leaf) for k, leaf in enumerate(leaves)},
            {
                "job": self.job.to_json(),
                "step": self.step,
                "finished": self.finished,
                "rows": self.rows.count,
                "evaluations": self.evaluations,
            },
        )

    def policy(self, state: TrainState) -> Policy:
        return Policy(
            algorithm=self.program.algorithm,
            options=self.program.options,
            config=self.program.algorithm.config(**self.job.config),
            network=self.program.unravel(state.params),
            obs_shape=(
                self.dataset.obs_shape
                if self.dataset.features is not None
                else input_shape(self.dataset, self.job.spec.stack)
            ),
            actions=self.dataset.actions,
            hidden=self.job.spec.hidden,
            torso=self.job.spec.torso,
            memory=self.job.spec.memory,
            rescaled=bool(self.job.spec.rescale),
            masked=self.dataset.legal is not None,
            info={"job": self.job.to_json(), "step": int(state.step), "facts": self.facts},
            features=self.dataset.features,
        )
