"""An evaluator beside training: it plays every snapshot that a run lays out, as the paper's did.

A follower makes the folder `waiting` inside a run. From then on training lays a copy of the policy
there at every checkpoint (`offer`), and the follower plays it, writes its figures to
`evaluation.jsonl` and takes it away, in that order. Killed at any moment it begins again with the
first snapshot that has no figures; figures depend on the snapshot's step and the seed alone.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax

from rbve import envs, rows, schema, stopping
from rbve.data import load
from rbve.data.features import Features
from rbve.data.inputs import input_shape
from rbve.envs._atari_games import with_reference
from rbve.envs.base import Env
from rbve.evaluation.fit import check_play, frames_joined
from rbve.evaluation.host import evaluate_on_host
from rbve.evaluation.rollout import Evaluation, make_rollout
from rbve.evaluation.worlds import check_legal, opened
from rbve.files import allow_open_files, locked
from rbve.policy import Policy
from rbve.policy.file import POLICY
from rbve.training.measures import final_rows, normalised
from rbve.training.spec import averaged

WAITING = "waiting"
# What is needed of a job, beyond the types that all rows and policies have.
JOB = {
    "spec": {
        "algorithm": str,
        "env": (str, None),
        **dict.fromkeys(("steps", "every", "eval_episodes", "final_evaluations", "stack"), int),
        **dict.fromkeys(("eval_epsilon", "gamma"), float),
        "clip_rewards": bool,
    },
    "data": {"path": str},
}


def offer(folder: Path, policy: Policy, step: int) -> None:
    """For training: lay a snapshot out, if somebody follows the run."""
    if (folder / WAITING).is_dir() and not (folder / POLICY).exists():
        policy.save(folder / WAITING / f"{step:012d}.safetensors")


@dataclass(frozen=True)
class Plan:
    """How snapshots are to be evaluated; None = as the run's own plan says."""

    env: str | None = None
    episodes: int | None = None
    epsilon: float | None = None
    seed: int = 0
    algorithm: Path | None = None  # file of the runs whose algorithm has its name
    legal: str | None = None  # "all", where the data has masks and the environment has none

    def __post_init__(self) -> None:
        check_play(
            1 if self.episodes is None else self.episodes,
            0.0 if self.epsilon is None else self.epsilon,
            self.seed,
        )

    def of(self, spec: dict[str, Any], folder: Path) -> Settled:
        env = self.env or envs.named_in_file(spec["env"], folder)
        if env is None:
            raise ValueError(f"{folder}: the run names no environment; say which with --env")
        return Settled(
            env=env,
            episodes=spec["eval_episodes"] if self.episodes is None else self.episodes,
            epsilon=spec["eval_epsilon"] if self.epsilon is None else self.epsilon,
            seed=self.seed,
            legal=self.legal,
        )


@dataclass(frozen=True)
class Settled:
    """How the snapshots of one run are evaluated."""

    env: str
    episodes: int
    epsilon: float
    seed: int
    legal: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Without `legal` where it is left to the environment, as in files of earlier versions."""
        known = dataclasses.asdict(self)
        return {name: value for name, value in known.items() if name != "legal" or value}


class Evaluated(NamedTuple):
    folder: Path
    step: int
    figures: dict[str, float]


class Tally(NamedTuple):
    evaluated: int  # runs, to their end
    runs: int


def follow(
    out: Path,
    plan: Plan,
    on_progress: Callable[[Evaluated], None] = lambda evaluated: None,
    once: bool = False,
    pause: float = 2.0,
) -> Tally:
    """Evaluate snapshots of all runs below `out` until every run is finished.

    `once` plays what is there and leaves. `pause` is the time in seconds between looks. A run that
    cannot be evaluated so is left out, and told when the others are done.
    """
    refused: dict[Path, str] = {}
    with ExitStack() as locks:
        taken: set[Path] = set()

        def evaluate(folder: Path) -> Iterator[Evaluated]:
            stopping.check()
            if folder not in taken:
                locks.enter_context(locked(folder / rows.EVALUATION))
                taken.add(folder)
            yield from evaluate_waiting(folder, plan)

        while True:
            stopping.check()
            folders = runs_below(out)
            if not folders and once:
                raise ValueError(
                    f"{out}: no {rows.FILE} below; train with `rbve train ... --out {out}`"
                )
            allow_open_files(len(folders))
            for folder in folders:
                if folder in refused:
                    continue
                try:
                    for found in evaluate(folder):
                        on_progress(found)
                except (ValueError, ImportError) as error:
                    refused[folder] = str(error)
            # Listed again: a run may have begun while others were played.
            folders = [folder for folder in runs_below(out) if folder not in refused]
            settled = sum(is_settled(folder) for folder in folders)
            if once or ((folders or refused) and settled == len(folders)):
                break
            time.sleep(pause)
    if refused:
        raise ValueError(complaint(refused, len(folders)))
    return Tally(settled, len(folders))


def complaint(refused: dict[Path, str], others: int) -> str:
    """The first run at length, the rest by name."""
    (first, words), *rest = refused.items()
    told = words if words.startswith(str(first)) else f"{first}: {words}"
    names = f" (the others: {', '.join(folder.name for folder, _ in rest)})" if rest else ""
    return f"{told}; runs left out: {len(refused)} of {len(refused) + others}{names}"


def runs_below(out: Path) -> list[Path]:
    return sorted(file.parent for file in out.rglob(rows.FILE))


def is_settled(folder: Path) -> bool:
    """Whether the run's final policy has been evaluated."""
    final = folder / POLICY
    file = folder / rows.EVALUATION
    if not final.exists() or not file.exists():
        return False
    metrics = {row.metric for row in rows.read(file).rows}
    return "final/return" in metrics


def evaluate_waiting(folder: Path, plan: Plan) -> Iterator[Evaluated]:
    """Snapshots in the order of their steps; last, once it is there, the final policy."""
    waiting = folder / WAITING
    check_plan(folder, plan)
    if not (waiting.exists() or (folder / POLICY).exists()):
        check_fit(folder, plan)
        waiting.mkdir(exist_ok=True)
    for snapshot in sorted(waiting.glob("*.safetensors")):
        yield from evaluate_one(folder, load_policy(snapshot, folder, plan), plan, final=False)
        snapshot.unlink()
    if (folder / POLICY).exists() and not any(waiting.glob("*.safetensors")):
        if not is_settled(folder):
            yield from evaluate_one(
                folder, load_policy(folder / POLICY, folder, plan), plan, final=True
            )
        if waiting.exists() and not any(waiting.iterdir()):
            waiting.rmdir()


def read_run(file: Path) -> rows.Run:
    run = rows.read(file)
    schema.check(run.spec, JOB, f"{file}: not of a training run")
    return run


def load_policy(file: Path, folder: Path, plan: Plan) -> Policy:
    trained = Path(read_run(folder / rows.FILE).spec["spec"]["algorithm"])
    own = plan.algorithm is not None and plan.algorithm.name == trained.name
    policy = Policy.load(file, plan.algorithm if own else None)
    needed = {"job": JOB, "facts": dict, "step": int}
    schema.check(policy.info, needed, f"{file}: not of a training run")
    return policy


def check_plan(folder: Path, plan: Plan) -> None:
    """Whether what is evaluated already, all of it perhaps, was so as the plan says."""
    file = folder / rows.EVALUATION
    if not file.exists():
        return
    run = read_run(file)
    if run.facts.get("evaluated") != plan.of(run.spec["spec"], folder).to_json():
        raise otherwise(file, run)


def check_fit(folder: Path, plan: Plan) -> None:
    """Before training is asked for snapshots: whether they will fit, if the data can still tell."""
    job = read_run(folder / rows.FILE).spec
    with opened(plan.of(job["spec"], folder).env, episodes=1) as world:
        try:
            data = load(job["data"]["path"], verify=False)
        except (ValueError, OSError):  # moved, or named from elsewhere: the first snapshot tells
            return
        stack = job["spec"]["stack"]
        shape = data.obs_shape if data.features is not None else input_shape(data, stack)
        frames_joined(world, Fitting(shape, data.actions, {"job": job}, data.features))
        check_legal(world, data.legal is not None, plan.legal)


class Fitting(NamedTuple):
    """Of a policy, what decides whether it fits an environment."""

    obs_shape: tuple[int, ...]
    actions: Sequence[str]
    info: dict[str, Any]
    features: Features | None


def evaluate_one(folder: Path, policy: Policy, plan: Plan, final: bool) -> Iterator[Evaluated]:
    """Figures of one policy, added to the file; nothing where they are on disk already."""
    job = policy.info["job"]
    settled = plan.of(job["spec"], folder)
    run = run_so_far(folder, job, facts_of(policy, settled))
    step = int(policy.info["step"])
    fresh = []
    if not any(row.step == step for row in run.rows):
        measured = play_policy(policy, settled, step)
        measured |= normalised(measured["return"], run.facts)
        fresh = [rows.Row(step, name, value, n) for name, (value, n) in measured.items()]
    if final:
        spec = job["spec"]
        last = averaged(spec["steps"], spec["every"], spec["final_evaluations"])
        fresh += final_rows(step, evaluations([*run.rows, *fresh])[-last:])
    if fresh:
        rows.write(run._replace(rows=[*run.rows, *fresh]), folder / rows.EVALUATION)
        yield Evaluated(folder, step, {row.metric: row.value for row in fresh})


def facts_of(policy: Policy, plan: Settled) -> dict[str, Any]:
    facts = {**policy.info["facts"], "env": plan.env, "evaluated": plan.to_json()}
    return with_reference(facts, plan.env)


def run_so_far(folder: Path, job: dict[str, Any], facts: dict[str, Any]) -> rows.Run:
    file = folder / rows.EVALUATION
    if not file.exists():
        return rows.Run(rows.read(folder / rows.FILE).job, job, facts, [])
    run = rows.read(file)
    if run.facts != facts:
        raise otherwise(file, run)
    return run


def otherwise(file: Path, run: rows.Run) -> ValueError:
    return ValueError(
        f"{file}: was evaluated otherwise ({json.dumps(run.facts.get('evaluated'))}); give the "
        "same environment, episodes, epsilon, seed and legal, or move the file away"
    )


def evaluations(known: list[rows.Row]) -> list[dict[str, tuple[float, int]]]:
    """Figures by step, in the order of steps."""
    found: dict[int, dict[str, tuple[float, int]]] = {}
    for row in known:
        found.setdefault(row.step, {})[row.metric] = (row.value, row.n)
    return [found[step] for step in sorted(found)]


def play_policy(policy: Policy, plan: Settled, step: int) -> dict[str, tuple[float, int]]:
    spec = policy.info["job"]["spec"]
    gamma, clip = spec["gamma"], spec["clip_rewards"]
    episodes, epsilon = plan.episodes, plan.epsilon
    found: Evaluation
    with opened(plan.env, episodes=episodes) as world:
        frames_joined(world, policy)
        check_legal(world, policy.masked, plan.legal)
        if isinstance(world, Env):
            actor = policy.act_function()
            run = jax.jit(make_rollout(world, actor, episodes, epsilon, gamma, clip))
            key = jax.random.fold_in(jax.random.key(plan.seed), step)
            found = run(policy.network, policy.config, key)
        else:
            seed = plan.seed * 1_000_003 + step
            found = evaluate_on_host(world, policy, episodes, epsilon, gamma, clip, seed)
    return found.summary(policy.algorithm.values)
