"""Train the members of one program: advance, evaluate, write rows, save, in that order.

Every member has a folder of its own: rows.jsonl, checkpoint.safetensors and, at the end,
policy.safetensors. Whatever the members' company, a member's folder is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rbve import envs
from rbve.data.dataset import Dataset
from rbve.data.inputs import input_shape
from rbve.envs.base import Env
from rbve.evaluation.fit import category_codes, frames_in
from rbve.evaluation.host import evaluate_on_host
from rbve.evaluation.lanes import LANES, open_lanes
from rbve.evaluation.rollout import make_rollout
from rbve.policy import act_function
from rbve.training.member import CHECKPOINT as CHECKPOINT
from rbve.training.member import POLICY as POLICY
from rbve.training.member import MemberRun
from rbve.training.member import is_finished as is_finished
from rbve.training.parallel import Team, team
from rbve.training.spec import Job, Spec
from rbve.training.stream import Stream, advance_streams
from rbve.training.table import Table, pack, pack_sequences
from rbve.training.update import Program, TrainState, make_program


class Progress(NamedTuple):
    """Told after every interval of every member."""

    job: Job
    step: int
    metrics: dict[str, float]


def train_members(
    jobs: Sequence[Job],
    datasets: Sequence[Dataset],
    folders: Sequence[Path],
    on_progress: Callable[[Progress], None] = lambda progress: None,
    vectorise: bool | None = None,
    devices: int = 1,
) -> None:
    """Train jobs of one program, each on its dataset, resuming where a checkpoint is.

    Members run one after another on a CPU device, which makes each equal to the same run done
    alone, and vmapped on accelerators (`vectorise` overrides). With more `devices` than one, they
    run one after another with every batch split over the devices.
    """
    spec = jobs[0].spec
    group = team(devices, spec.batch_size)
    if any(job.program != jobs[0].program for job in jobs):
        raise ValueError("jobs trained together must share one Spec")
    algorithm = spec.load_algorithm()
    kept = {id(data): algorithm.keep(data) for data in datasets}
    table = table_for(spec, [kept[id(data)] for data in datasets])
    program = make_program(spec, table.layout, group.split)
    evaluate = make_evaluator(spec, program, datasets[0])
    members = [
        MemberRun(job, data, folder, program, table, index)
        for index, (job, data, folder) in enumerate(zip(jobs, datasets, folders, strict=True))
    ]
    with advancing(program, members, table, group, vectorise) as advance:
        run_to_the_end(spec, members, advance, evaluate, on_progress)


def table_for(spec: Spec, datasets: Sequence[Dataset]) -> Table:
    bootstrap: Any = spec.load_algorithm().bootstrap
    where = {"auto": None, "memory": True, "disk": False}[spec.rows]
    if spec.memory:
        return pack_sequences(datasets, spec.view, bootstrap, spec.sequence, spec.burn_in, where)
    return pack(datasets, spec.view, bootstrap, spec.stack, where)


def run_to_the_end(
    spec: Spec,
    members: Sequence[MemberRun],
    advance: Callable[..., list[tuple[TrainState, Any]]],
    evaluate: Callable[..., Any],
    on_progress: Callable[[Progress], None],
) -> None:
    for until in boundaries(spec):
        active = [member for member in members if member.step < until and not member.finished]
        results = advance(
            [member.state for member in active], [member.inputs for member in active], until
        )
        evaluations = [
            evaluate(state, member, until)
            for member, (state, _) in zip(active, results, strict=True)
        ]
        for member, (state, sums), evaluation in zip(active, results, evaluations, strict=True):
            metrics = member.record(state, sums, evaluation, until)
            if member.stream is not None:
                # Told, never written: rows say what was learned, and stay the same on any machine.
                metrics["wait_share"] = member.stream.waiting.share
            on_progress(Progress(member.job, until, metrics))


def boundaries(spec: Spec) -> list[int]:
    return [*range(spec.every, spec.steps, spec.every), spec.steps]


@contextmanager
def advancing(
    program: Program,
    members: Sequence[MemberRun],
    table: Table,
    group: Team,
    vectorise: bool | None = None,
) -> Iterator[Callable[..., list[tuple[TrainState, Any]]]]:
    """(states, inputs, until) -> states and metrics, wherever the rows are."""
    if table.rows is None:
        spec = members[0].job.spec
        for columns, member in zip(table.columns, members, strict=True):
            if not member.finished:
                member.stream = Stream(
                    columns,
                    member.inputs,
                    spec.batch_size,
                    member.step,
                    boundaries(spec),
                    len(members),
                )
        streams = [member.stream for member in members if member.stream is not None]
        try:
            yield advance_streams(program, streams, group)
        finally:
            for stream in streams:
                stream.close()
        return
    if vectorise is None:
        vectorise = jax.default_backend() != "cpu" and len(group.devices) == 1
    rows = group.everywhere(table.rows)
    yield advance_together(program, rows) if vectorise else advance_in_turn(program, rows, group)


def advance_in_turn(
    program: Program, rows: Any, group: Team
) -> Callable[..., list[tuple[TrainState, Any]]]:
    compiled = group.compiled(program.advance)
    return lambda states, members, until: [
        group.home(compiled(state, rows, member, until))
        for state, member in zip(states, members, strict=True)
    ]


def advance_together(program: Program, rows: Any) -> Callable[..., list[tuple[TrainState, Any]]]:
    compiled = jax.jit(jax.vmap(program.advance, in_axes=(0, None, 0, None)))

    def advance(states: Any, members: Any, until: int) -> Any:
        if not states:
            return []
        stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
        inputs = jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)
        result = compiled(stack, rows, inputs, until)
        return [jax.tree.map(lambda leaf, k=k: leaf[k], result) for k in range(len(states))]

    return advance


def make_evaluator(spec: Spec, program: Program, dataset: Dataset) -> Callable[..., Any]:
    if spec.env is None:
        return lambda state, member, until: None
    env = envs.load(spec.env)
    check_fit(spec.env, env, dataset, spec.stack)
    if not isinstance(env, Env):
        lanes = open_lanes(spec.env, count=min(spec.eval_episodes, LANES))
        return lambda state, member, until: evaluate_on_host(
            lanes,
            member.policy(state),
            spec.eval_episodes,
            spec.eval_epsilon,
            spec.gamma,
            spec.clip_rewards,
            seed=until,
            salt=member.job.seed,
        )
    act = act_function(
        program.algorithm, program.options, program.unravel, dataset.features, bool(spec.rescale)
    )
    rollout = jax.jit(
        make_rollout(env, act, spec.eval_episodes, spec.eval_epsilon, spec.gamma, spec.clip_rewards)
    )
    return lambda state, member, until: rollout(
        state.params, member.inputs.config, jax.random.fold_in(member.key_evaluation, until)
    )


def check_fit(name: str, env: Any, dataset: Dataset, stack: int) -> None:
    shape = dataset.obs_shape if dataset.features is not None else input_shape(dataset, stack)
    stacked = None if isinstance(env, Env) else frames_in(tuple(env.obs_shape), shape, stack)
    coded = category_codes(env, dataset.features) is not None
    fits = coded or stacked is not None or tuple(env.obs_shape) == shape
    if not fits or len(env.actions) != dataset.num_actions:
        raise ValueError(
            f"environment {name} has observations {tuple(env.obs_shape)} and {len(env.actions)} "
            f"actions, the dataset {shape} and {dataset.num_actions}{remedy(env, dataset, fits)}"
        )


def remedy(env: Any, dataset: Dataset, fits: bool) -> str:
    """Data from elsewhere may show fewer actions than there are."""
    origin = dataset.provenance.get("format")
    if not fits or origin is None or dataset.num_actions > len(env.actions):
        return ""
    every = str(len(env.actions)) if origin == "rlu" else "and all their names"
    return f"; if it shows only some of them, convert again with --actions {every}"
