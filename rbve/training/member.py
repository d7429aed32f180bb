"""One member of a program: its state, its rows and its files."""

import os
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve import rows as result_rows
from rbve import schema
from rbve.data.dataset import Dataset
from rbve.data.inputs import input_shape
from rbve.evaluation.follow import POLICY as POLICY
from rbve.evaluation.follow import SNAPSHOTS, WAITING, offer
from rbve.evaluation.heldout import HeldOutEpisodes
from rbve.evaluation.metric import OfflineCase, evaluate_offline, offline_facts
from rbve.evaluation.rollout import Evaluation, Figures, final_rows
from rbve.policy import Policy
from rbve.policy.trained import averaged
from rbve.rows import FINISHED, Row, RowFile
from rbve.spec import Spec
from rbve.tensors import read_tensors, write_tensors
from rbve.training.batches.table import Table
from rbve.training.measures import facts
from rbve.training.stream import Stream
from rbve.training.update import Member, Program, TrainState, member_keys

CHECKPOINT = "checkpoint.safetensors"
PREVIOUS = "checkpoint.previous.safetensors"  # the one before it, should it be damaged
_SUMS = "sums."  # opens the names of sums of metrics, in a checkpoint between two rows

_INFO = {
    "job": dict, "step": int, "finished": bool, "rows": int, "rows_crc32": int,
    "evaluations": [{"*": [float]}],  # (value, n) each
    "rows_of_intervals?": int,  # of a finished run: those before its final figures
}  # fmt: skip


class Damaged(ValueError):
    """A checkpoint, or the rows it counts, are not as they were written."""


def is_finished(folder: Path) -> bool:
    """Whether the whole run is there and undamaged."""
    try:
        info = _read_checkpoint(folder / CHECKPOINT)[1]
        read_tensors(folder / POLICY)
        if info["finished"]:
            file = folder / result_rows.FILE
            result_rows.first_rows(file, info["rows"], info["rows_crc32"], last=True)
    except ValueError:
        return False
    return info["finished"]


def _read_checkpoint(file: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    arrays, info = read_tensors(file)
    schema.check(info, _INFO, f"{file}: not a checkpoint of this version")
    if any(len(pair) != 2 for each in info["evaluations"] for pair in each.values()):
        raise ValueError(f"{file}: damaged; an evaluation is not a value and a count")
    return arrays, info


def _evaluations_of(info: dict[str, Any]) -> list[Figures]:
    return [{name: (value, n) for name, (value, n) in each.items()} for each in info["evaluations"]]


class MemberRun:
    def __init__(
        self,
        job: Spec,
        dataset: Dataset,
        folder: Path,
        program: Program,
        table: Table,
        index: int,
        held_out: HeldOutEpisodes | None = None,
    ) -> None:
        self.job, self.dataset, self.folder, self.program = job, dataset, folder, program
        self.held_out = held_out
        key_weights, key_updates, _ = member_keys(job.seed)
        self.inputs = Member(
            key=key_updates,
            offset=jnp.int32(table.offset[index]),
            size=jnp.int32(table.count[index]),
            g_scale=jnp.float32(table.g_scale[index]),
            learning_rate=jnp.float32(job.optimiser.learning_rate),
            target_period=jnp.int32(job.optimiser.target_period),
            config=jax.tree.map(jnp.float32, job.load_config()),
        )
        self.columns = table.columns[index]
        self.state = program.init(key_weights)
        self.sums: Any = None  # of metrics since `step`; None before the first update after it
        self.step = 0  # up to which rows are written
        self.finished = False
        self.rows_of_intervals = 0  # without the final figures
        self.stream: Stream | None = None  # where rows stay on disk
        self.evaluations: list[Figures] = []
        self.facts = facts(dataset, job.evaluation.env, job.data)
        self.facts |= offline_facts(dataset, job.view)
        if held_out is not None:
            self.facts["held_out_episodes"] = held_out.episodes.num_episodes
        self.rows = RowFile(folder, job.id, job.to_json(), self.facts)
        self.resume()

    def resume(self) -> None:
        """From the last checkpoint, or the one before it where that is damaged."""
        self.folder.mkdir(parents=True, exist_ok=True)
        files = [self.folder / name for name in (CHECKPOINT, PREVIOUS)]
        damage = []
        for file in (file for file in files if file.exists()):
            try:
                self.load(file)
            except Damaged as error:
                damage.append(str(error))
                continue
            if damage:
                files[0].unlink(missing_ok=True)  # not to take the place of the good one
                warnings.warn(
                    f"{damage[0]}; going on from the checkpoint before it, at update "
                    f"{int(self.state.step):,}",
                    stacklevel=2,
                )
            return
        if damage:
            raise Damaged(f"{damage[0]}; delete {self.folder} to train it from the start")
        if not self.extend():
            self.rows.keep(0)

    def extend(self) -> bool:
        """Go on from a finished run of fewer updates beside this one, if all else is equal."""
        if any((self.folder / name).exists() for name in (SNAPSHOTS, WAITING)):
            return False  # every stage is asked for, and that run has none left
        every = self.job.evaluation.every
        for steps in range((self.job.steps - 1) // every * every, 0, -every):
            shorter = self.job.varied(steps=steps)
            folder = self.folder.parent / shorter.id
            if not (folder / CHECKPOINT).exists() or not is_finished(folder):
                continue
            arrays, info = _read_checkpoint(folder / CHECKPOINT)
            state, kept = self._state_of(arrays), info.get("rows_of_intervals")
            if state is not None and kept is not None and int(state.diverged_at) < 0:
                self.rows.take(folder / result_rows.FILE, kept)
                self.state, self.step = state, info["step"]
                self.evaluations = _evaluations_of(info)
                self.save()
                return True
        return False

    def load(self, file: Path) -> None:
        try:
            arrays, info = _read_checkpoint(file)
        except ValueError as error:
            raise Damaged(str(error)) from None
        state = self._state_of(arrays)
        try:
            job = Spec.from_json(info["job"]).id
        except (ValueError, TypeError, AttributeError):
            remedy = f"delete {file.parent} to train anew"
            raise ValueError(f"{file}: of another version; {remedy}") from None
        if job != self.job.id or state is None:  # not by its JSON: a later version has more fields
            raise ValueError(f"{file}: belongs to another job; choose another output folder")
        try:
            self.rows.keep(info["rows"], info["rows_crc32"])
        except ValueError as error:
            raise Damaged(str(error)) from None
        self.state, self.step, self.finished = state, info["step"], info["finished"]
        names = [name for name in arrays if name.startswith(_SUMS)]
        self.sums = {name.removeprefix(_SUMS): jnp.asarray(arrays[name]) for name in names} or None
        self.evaluations = _evaluations_of(info)
        if self.finished and not is_finished(self.folder):
            self.policy().save(self.folder / POLICY)

    def _state_of(self, arrays: dict[str, np.ndarray]) -> TrainState | None:
        """The state that a checkpoint holds; None where it is of another network."""
        leaves, structure = jax.tree.flatten(self.state)
        loaded = [arrays.get(f"state.{k}") for k in range(len(leaves))]
        fits = all(
            leaf is not None and (leaf.shape, leaf.dtype) == (own.shape, own.dtype)
            for leaf, own in zip(loaded, leaves, strict=True)
        )
        return jax.tree.unflatten(structure, list(map(jnp.asarray, loaded))) if fits else None

    def is_behind(self, until: int) -> bool:
        return int(self.state.step) < until and int(self.state.diverged_at) < 0

    def sums_so_far(self) -> Any:
        """Arrays of their own each time: a call takes over what it is given."""
        return self.program.zeros(self.inputs) if self.sums is None else self.sums

    def pause(self) -> None:
        """A checkpoint between two rows, from which the run goes on as if it had not stopped."""
        if self.sums is not None:
            self.save()

    def record(self, evaluation: Evaluation | None, until: int) -> dict[str, float]:
        """Rows of the interval that ended at `until`, its policy, then the checkpoint of both."""
        state, sums, plan = self.state, self.sums, self.job.evaluation
        diverged = int(state.diverged_at)
        updates = (diverged if diverged >= 0 else until) - self.step
        means = {name: float(np.mean(value)) / max(updates, 1) for name, value in sums.items()}
        means["grad_norm"] = float(np.sqrt(means.pop("grad_norm2")))
        rows = [Row(until, f"train/{name}", value, updates) for name, value in means.items()]
        if evaluation is not None:
            figures = evaluation.figures(self.facts)
            self.evaluations = [*self.evaluations, figures][-plan.final_evaluations :]
            rows += [Row(until, name, value, n) for name, (value, n) in figures.items()]
        judged = {} if self.held_out is None else self.held_out.figures(self.policy())
        rows += [Row(until, name, *figure) for name, figure in judged.items()]
        self.step, self.sums = until, None
        self.rows_of_intervals = self.rows.count + len(rows)
        self.finished = until >= self.job.steps or diverged >= 0
        if diverged >= 0:
            rows.append(Row(until, "diverged_at", float(diverged), 1))
        if self.finished:
            last = averaged(self.job.steps, plan.every, plan.final_evaluations)
            rows += final_rows(until, self.evaluations[-last:])
            case = OfflineCase(
                self.dataset,
                self.job.view,
                self.columns,
                self.job.sampling.batch_size,
                lambda picked: self.program.chosen_values(state.params, picked, self.inputs),
                self.program.algorithm.values,
            )
            rows += evaluate_offline(case, until)
            rows += [Row(until, f"final/{name}", *figure) for name, figure in judged.items()]
            rows.append(Row(until, FINISHED, 1.0, 1))
        self.rows.append(rows)
        if self.finished:
            self.policy().save(self.folder / POLICY)
        offer(self.folder, self.policy(), until)  # before the checkpoint, or a kill would lose it
        self.save()
        return {row.metric: row.value for row in rows}

    def save(self) -> None:
        held = {f"state.{k}": leaf for k, leaf in enumerate(jax.tree.leaves(self.state))}
        held |= {f"{_SUMS}{name}": value for name, value in (self.sums or {}).items()}
        info = {
            "job": self.job.to_json(),
            "step": self.step,
            "finished": self.finished,
            "rows": self.rows.count,
            "rows_crc32": self.rows.crc,
            "evaluations": self.evaluations,
            **({"rows_of_intervals": self.rows_of_intervals} if self.finished else {}),
        }
        file = self.folder / CHECKPOINT
        if file.exists():  # killed before the next line, the run goes on from the previous one
            os.replace(file, self.folder / PREVIOUS)
        write_tensors(file, {name: np.asarray(value) for name, value in held.items()}, info)

    def policy(self) -> Policy:
        state, own, data = self.state, self.job.network, self.dataset
        diverged = int(state.diverged_at)
        stacked = data.features is None
        return Policy(
            algorithm=self.program.algorithm,
            options=self.program.options,
            config=self.job.load_config(),
            network=self.program.unravel(state.params),
            obs_shape=input_shape(data, own.stack) if stacked else data.obs_shape,
            actions=data.actions,
            hidden=own.hidden,
            torso=own.torso,
            memory=own.memory,
            rescaled=own.rescale,
            masked=data.legal is not None,
            info={
                "job": self.job.to_json(),
                "step": int(state.step),
                "facts": self.facts,
                **({"diverged_at": diverged} if diverged >= 0 else {}),
            },
            features=data.features,
        )
