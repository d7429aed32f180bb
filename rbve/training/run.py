"""Train the members of one program: advance, evaluate, write rows, save, in that order.

Every member has a folder of its own: rows.jsonl, checkpoint.safetensors and, at the end,
policy.safetensors. Whatever the members' company, a member's folder is the same.
"""

import functools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rbve import stopping
from rbve.data.dataset import Dataset
from rbve.evaluation.evaluate import open_evaluator
from rbve.evaluation.fit import Interface
from rbve.evaluation.heldout import HeldOutEpisodes
from rbve.evaluation.rollout import EvaluationPlan
from rbve.files import locked
from rbve.spec import Spec
from rbve.stopping import Stopped
from rbve.training.batches.table import Table, sequence_table, transition_table
from rbve.training.member import CHECKPOINT as CHECKPOINT
from rbve.training.member import POLICY as POLICY
from rbve.training.member import Damaged, MemberRun
from rbve.training.member import is_finished as is_finished
from rbve.training.notes import holdout_notes, weight_notes
from rbve.training.stream import Stream
from rbve.training.update import DRAWS, Program, TrainState, make_program, whole
from rbve.training.work import check_work
from rbve.types import Tree

SECONDS_PER_CALL = 1.0  # about, of a device; work can be stopped between two
_Advance = Callable[[Sequence[MemberRun], int], None]


@dataclass(frozen=True)
class _Team:
    """Devices that share a run: the batch is split, all else is the same on each.

    The compiler adds the sums over devices, so a loss and its batch statistics (the mean return in
    the ranking weights) see the whole batch, and a run gives the same parameters but for rounding.
    """

    devices: tuple[jax.Device, ...]

    def placed(self, *axes: str | None) -> NamedSharding:
        """On all devices alike, or split along the axis called batch."""
        return NamedSharding(Mesh(np.array(self.devices), ("batch",)), PartitionSpec(*axes))

    def split(self, tree: Tree) -> Tree:
        """Inside a program: arrays (B, ...) are worked on in parts."""
        if len(self.devices) == 1:
            return tree
        return jax.lax.with_sharding_constraint(tree, self.placed("batch"))

    def sharing(self, items: Any) -> Any:
        """Items of batches that are worked on in parts; sequences have to know their devices."""
        if len(self.devices) == 1 or not hasattr(items, "devices"):
            return items
        return replace(items, devices=self.devices)

    def compiled(self, advance: Callable[..., Any], *axes: str | None) -> Callable[..., Any]:
        """advance(state, rows, member, until, sums) as a program; `axes` say how the rows are
        split."""
        program = jax.jit(advance, donate_argnums=(0, 4))
        if len(self.devices) == 1:
            return program
        if jax.process_count() > 1:  # each holds all that comes of it
            program = jax.jit(advance, donate_argnums=(0, 4), out_shardings=self.placed())

        def run(state: Any, rows: Any, member: Any, until: int, sums: Any) -> Any:
            state, member, sums = self.everywhere((state, member, sums))
            return program(state, _put(rows, self.placed(*axes)), member, until, sums)

        return run

    def everywhere(self, tree: Tree) -> Tree:
        if len(self.devices) == 1:
            return jax.tree.map(jnp.asarray, tree)
        return _put(tree, self.placed())

    def home(self, tree: Tree) -> Tree:
        """Back on the first device of this process, where evaluation and files expect it."""
        if len(self.devices) == 1:
            return tree
        if jax.process_count() > 1:
            return jax.tree.map(lambda leaf: leaf.addressable_data(0), tree)
        return jax.device_put(tree, self.devices[0])


def _put(tree: Tree, where: NamedSharding) -> Tree:
    """Arrays that every process holds alike, on devices of all processes."""
    if jax.process_count() == 1:
        return jax.device_put(tree, where)

    def put(leaf: Any) -> jax.Array:
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(put(jax.random.key_data(leaf)))
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            return leaf
        held = np.asarray(leaf)
        return jax.make_array_from_callback(held.shape, where, lambda index: held[index])

    return jax.tree.map(put, tree)


def team(count: int, batch_size: int) -> _Team:
    """`count` devices from the one this thread uses by default on; of several processes, which
    jax.distributed.initialize() has joined, `count` in all, as many of each."""
    if (processes := jax.process_count()) > 1:
        every = [[d for d in jax.devices() if d.process_index == k] for k in range(processes)]
        check_devices(count, processes * min(map(len, every)), batch_size)
        if count % processes:
            raise ValueError(f"{count} devices are not as many of each of {processes} processes")
        return _team(tuple(each for own in every for each in own[: count // processes]))
    local = jax.local_devices()
    chosen = jax.config.values.get("jax_default_device")
    first = local.index(chosen) if isinstance(chosen, jax.Device) else 0
    check_devices(count, len(local) - first, batch_size)
    return _team(tuple(local[first : first + count]))


_team = functools.cache(_Team)  # one of each: a program is known by its team's `split`


def check_devices(count: int, available: int, batch_size: int) -> None:
    if not 1 <= count <= available:
        raise ValueError(f"devices must lie in [1, {available}], as many as there are; got {count}")
    if batch_size % count:
        raise ValueError(
            f"a batch of {batch_size} cannot be split evenly over {count} devices; choose another "
            "--batch-size or --devices 1"
        )


class Progress(NamedTuple):
    job: Spec
    step: int
    metrics: dict[str, float]


def train_members(
    jobs: Sequence[Spec],
    datasets: Sequence[Dataset],
    folders: Sequence[Path],
    on_progress: Callable[[Progress], None] = lambda progress: None,
    vectorise: bool | None = None,
    devices: int = 1,
    held_out: Sequence[Dataset | None] = (),
) -> None:
    """Train jobs of one program, each on its dataset, resuming where a checkpoint is.

    `held_out` are the episodes by which each is judged at every interval, where it has any.

    Members run one after another on a CPU device, which makes each equal to the same run done
    alone, and vmapped on accelerators (`vectorise` overrides). With more `devices` than one, they
    run one after another with every batch split over the devices.
    """
    jobs = [job.resolved() for job in jobs]
    spec = jobs[0]
    group = team(devices, spec.sampling.batch_size)
    if any(job.program != jobs[0].program for job in jobs):
        raise ValueError("jobs trained together must share one program")
    algorithm = spec.load_algorithm()
    kept = {id(data): algorithm.keep(data) for data in datasets}
    table = table_for(spec, [kept[id(data)] for data in datasets])
    items = group.sharing(table.items)
    program = make_program(spec, items, group.split if devices > 1 else whole)
    judges = _judges(jobs, datasets, held_out)
    for note in (
        *weight_notes(jobs, program.options, table.g_scale.tolist()),
        *(holdout_notes(jobs, datasets, held_out) if held_out else ()),
    ):
        warnings.warn(note, stacklevel=2)
    with ExitStack() as stack:
        evaluate = stack.enter_context(evaluating(spec, datasets[0]))
        for folder in folders:
            stack.enter_context(locked(folder))
        members, damage = [], []
        for index, (job, data, folder) in enumerate(zip(jobs, datasets, folders, strict=True)):
            try:
                run = MemberRun(job, data, folder, program, table, index, judges[index])
                members.append(run)
            except Damaged as error:
                damage.append(str(error))
        if left := [member for member in members if not member.finished]:
            check_work(spec, program.work(left[0].inputs), table.items.rows)
        advance = stack.enter_context(advancing(program, members, table, group, vectorise))
        try:
            for until in _boundaries(spec):
                active = [each for each in members if each.step < until and not each.finished]
                advance(active, until)
                evaluations = []
                for member in active:
                    stopping.check()
                    evaluations.append(evaluate(member, until))
                for member, evaluation in zip(active, evaluations, strict=True):
                    metrics = member.record(evaluation, until)
                    if (stream := member.stream) is not None:
                        # Told, never written: rows stay the same on any machine.
                        metrics["wait_share"] = stream.waited / max(stream.total, 1e-9)
                    on_progress(Progress(member.job, until, metrics))
        except Stopped:
            for member in members:
                member.pause()
            raise
    if damage:
        raise Damaged("; ".join(damage))


def _judges(
    jobs: Sequence[Spec], datasets: Sequence[Dataset], held_out: Sequence[Dataset | None]
) -> list[HeldOutEpisodes | None]:
    """One for all members that share their episodes."""
    made: dict[int, HeldOutEpisodes] = {}
    judges: list[HeldOutEpisodes | None] = []
    for job, data, held in zip(jobs, datasets, held_out or [None] * len(jobs), strict=True):
        if held is not None and id(held) not in made:
            made[id(held)] = HeldOutEpisodes(held, data, job.view, job.network.memory > 0)
        judges.append(None if held is None else made[id(held)])
    return judges


def table_for(spec: Spec, datasets: Sequence[Dataset]) -> Table:
    bootstrap: Any = spec.load_algorithm().bootstrap
    sampling = spec.sampling
    where = {"auto": None, "memory": True, "disk": False}[sampling.rows]
    if spec.network.memory:
        return sequence_table(
            datasets, spec.view, bootstrap, sampling.sequence, sampling.burn_in, where
        )
    return transition_table(datasets, spec.view, bootstrap, spec.network.stack, where)


def _boundaries(spec: Spec) -> list[int]:
    return [*range(spec.evaluation.every, spec.steps, spec.evaluation.every), spec.steps]


@contextmanager
def advancing(
    program: Program,
    members: Sequence[MemberRun],
    table: Table,
    group: _Team,
    vectorise: bool | None = None,
) -> Iterator[_Advance]:
    """(members, until): updates their states and sums, wherever the rows are.

    It takes calls of a second or so, between which the work can be stopped; in how many calls the
    updates are done changes nothing.
    """
    streams, pace = [], _Pace()
    if table.store is not None:
        if vectorise is None:
            vectorise = jax.default_backend() != "cpu" and len(group.devices) == 1
        rows = group.everywhere(table.store)
        if vectorise:
            together = jax.jit(jax.vmap(program.advance, in_axes=(0, None, 0, None, 0)))
            yield functools.partial(_advance_together, together, rows, pace)
            return
        compiled = group.compiled(program.advance)
    else:
        compiled = group.compiled(program.advance_given, None, "batch")

    def some_updates(member: MemberRun, until: int) -> tuple[TrainState, Any]:
        if member.stream is not None:
            return group.home(member.stream.advance(compiled, member.state, member.sums_so_far()))
        with pace.measured(int(member.state.step), until) as stop:
            result = compiled(member.state, rows, member.inputs, stop, member.sums_so_far())
            return jax.block_until_ready(group.home(result))

    def in_turn(active: Sequence[MemberRun], until: int) -> None:
        for member in active:
            while member.is_behind(until):
                stopping.check()
                member.state, member.sums = some_updates(member, until)

    try:
        for member in members if table.store is None else ():
            if not member.finished:
                batch, ends = members[0].job.sampling.batch_size, _boundaries(members[0].job)
                step, many = int(member.state.step), len(members)
                member.stream = Stream(member.columns, member.inputs, batch, step, ends, many)
                streams.append(member.stream)
        yield in_turn
    finally:
        for stream in streams:
            stream.close()


def _advance_together(
    compiled: Any, rows: Any, pace: "_Pace", members: Sequence[MemberRun], until: int
) -> None:
    if not members:
        return
    inputs = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(m.inputs for m in members))
    while behind := [int(m.state.step) for m in members if m.is_behind(until)]:
        stopping.check()
        carried = [(member.state, member.sums_so_far()) for member in members]
        states, sums = jax.tree.map(lambda *leaves: jnp.stack(leaves), *carried)
        with pace.measured(min(behind), until) as stop:
            result = jax.block_until_ready(compiled(states, rows, inputs, stop, sums))
        for k, member in enumerate(members):
            member.state, member.sums = jax.tree.map(lambda leaf, k=k: leaf[k], result)


class _Pace:
    """How many updates a call takes, so that it lasts about a second."""

    def __init__(self) -> None:
        self.updates = DRAWS

    @contextmanager
    def measured(self, step: int, until: int) -> Iterator[int]:
        """Where the call is to stop; inside it is made."""
        # Several processes make the same calls, whatever their clocks say.
        stop = until if jax.process_count() > 1 else min(step + self.updates, until)
        began = time.monotonic()
        yield stop
        seconds = max(time.monotonic() - began, 1e-3)
        # By steps: the first call also compiles.
        fitting = (stop - step) * SECONDS_PER_CALL / seconds
        self.updates = int(np.clip(fitting, self.updates // 4, 4 * self.updates)) + 1


@contextmanager
def evaluating(spec: Spec, dataset: Dataset) -> Iterator[Callable[[MemberRun, int], Any]]:
    """(member, step): the evaluation of its policy at that step; None without an environment."""
    own = spec.evaluation
    if own.env is None:
        yield lambda member, until: None
        return
    played = (own.eval_episodes, own.eval_epsilon)
    plan = EvaluationPlan(*played, spec.view.gamma, spec.view.clip_rewards, legal=own.legal)
    remedy = "add --legal all to evaluate as if all were, or --env none to evaluate nothing"
    needs = Interface.of_data(dataset, spec.network.stack)
    with open_evaluator(own.env, plan, needs, remedy) as evaluator:
        yield lambda member, until: evaluator.play(member.policy(), member.job.seed, until)
