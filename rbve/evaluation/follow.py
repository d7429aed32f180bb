"""An evaluator beside training: it plays every snapshot that a run lays out, as the paper's did.

A follower makes the folder `waiting` inside a run. From then on training lays a copy of the policy
there at every checkpoint (`offer`), and the follower plays it, writes its figures to
`evaluation.jsonl` and takes it away, in that order. Killed at any moment it begins again with the
first snapshot that has no figures; figures depend on the snapshot's step and the seed alone.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rbve import envs, rows, schema, stopping
from rbve.data import load
from rbve.envs.atari import with_reference
from rbve.evaluation.evaluate import evaluate, open_evaluator
from rbve.evaluation.fit import Interface
from rbve.evaluation.rollout import EvaluationPlan, Figures, check_seed, final_rows
from rbve.files import allow_open_files, locked
from rbve.policy import Policy
from rbve.policy.trained import JOB, TrainedAs
from rbve.runtime.saved import POLICY

WAITING = "waiting"
SNAPSHOTS = "snapshots"  # whoever makes this folder inside a run finds its policies there, all kept


def offer(folder: Path, policy: Policy, step: int) -> None:
    """For training: lay a snapshot out, if somebody follows the run or keeps its snapshots."""
    name = f"{step:012d}.safetensors"
    if (folder / WAITING).is_dir() and not (folder / POLICY).exists():
        policy.save(folder / WAITING / name)
    if (folder / SNAPSHOTS).is_dir():
        policy.save(folder / SNAPSHOTS / name)


@dataclass(frozen=True)
class FollowPlan:
    """How snapshots are to be evaluated; None = as the run says."""

    env: str | None = None
    episodes: int | None = None
    epsilon: float | None = None
    seed: int = 0
    algorithm: Path | None = None  # file of the runs whose algorithm has its name
    legal: str | None = None  # "all", where the data has masks and the environment has none

    def __post_init__(self) -> None:
        self._plan(TrainedAs())
        check_seed(self.seed)

    def _plan(self, trained: TrainedAs) -> EvaluationPlan:
        return EvaluationPlan(
            episodes=trained.eval_episodes if self.episodes is None else self.episodes,
            epsilon=trained.eval_epsilon if self.epsilon is None else self.epsilon,
            legal=self.legal,
        )

    def of(self, trained: TrainedAs, folder: Path) -> tuple[str, EvaluationPlan]:
        """Where and how the snapshots of one run are evaluated."""
        env = self.env or envs.named_in_file(trained.env, folder)
        if env is None:
            raise ValueError(f"{folder}: the run names no environment; say which with --env")
        return env, self._plan(trained)

    def noted(self, trained: TrainedAs, folder: Path) -> dict[str, Any]:
        """For the file of figures; without `legal` where it is left to the environment."""
        env, plan = self.of(trained, folder)
        noted = {"env": env, "episodes": plan.episodes, "epsilon": plan.epsilon, "seed": self.seed}
        return {**noted, "legal": self.legal} if self.legal else noted


class Evaluated(NamedTuple):
    folder: Path
    step: int
    figures: dict[str, float]


class _FollowCount(NamedTuple):
    evaluated: int  # runs, to their end
    runs: int


def follow(
    out: Path,
    plan: FollowPlan,
    on_progress: Callable[[Evaluated], None] = lambda evaluated: None,
    once: bool = False,
    pause: float = 2.0,
) -> _FollowCount:
    """Evaluate snapshots of all runs below `out` until every run is finished.

    With `once` it plays the snapshots that are there and returns; `pause` are seconds between two
    searches for snapshots. ValueError, when the others are done, if some runs could not be
    evaluated so.
    """
    refused: dict[Path, str] = {}
    with ExitStack() as locks:
        taken: set[Path] = set()
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
                    stopping.check()
                    if folder not in taken:
                        locks.enter_context(locked(folder / rows.EVALUATION))
                        taken.add(folder)
                    for evaluated in _evaluate_waiting(folder, plan):
                        on_progress(evaluated)
                except (ValueError, ImportError) as error:
                    refused[folder] = str(error)
            # Listed again: a run may have begun while others were played.
            folders = [folder for folder in runs_below(out) if folder not in refused]
            done = sum(is_evaluated(folder) for folder in folders)
            if once or ((folders or refused) and done == len(folders)):
                break
            time.sleep(pause)
    if refused:
        (first, words), *rest = refused.items()  # at length, the rest by name
        words = words if words.startswith(str(first)) else f"{first}: {words}"
        names = f" (the others: {', '.join(folder.name for folder, _ in rest)})" if rest else ""
        count = f"{len(refused)} of {len(refused) + len(folders)}{names}"
        raise ValueError(f"{words}; runs left out: {count}")
    return _FollowCount(done, len(folders))


def runs_below(out: Path) -> list[Path]:
    return sorted(file.parent for file in out.rglob(rows.FILE))


def is_evaluated(folder: Path) -> bool:
    """Whether the run's final policy has been evaluated."""
    file = folder / rows.EVALUATION
    return (folder / POLICY).exists() and file.exists() and rows.is_finished(rows.read(file))


def _evaluate_waiting(folder: Path, plan: FollowPlan) -> Iterator[Evaluated]:
    """Snapshots in the order of their steps; last, once it is there, the final policy."""
    waiting, file = folder / WAITING, folder / rows.EVALUATION
    if file.exists():  # whether what is evaluated already, all of it perhaps, was so as planned
        run = rows.read(file)
        if run.facts.get("evaluated") != plan.noted(_trained_as(file), folder):
            raise _other_plan(file, run)
    if not (waiting.exists() or (folder / POLICY).exists()):
        _check_fit(folder, plan)
        waiting.mkdir(exist_ok=True)
    for snapshot in sorted(waiting.glob("*.safetensors")):
        yield from _evaluate_one(folder, _load_policy(snapshot, folder, plan), plan, final=False)
        snapshot.unlink()
    if (folder / POLICY).exists() and not any(waiting.glob("*.safetensors")):
        if not is_evaluated(folder):
            policy = _load_policy(folder / POLICY, folder, plan)
            yield from _evaluate_one(folder, policy, plan, final=True)
        if waiting.exists() and not any(waiting.iterdir()):
            waiting.rmdir()


def _trained_as(file: Path) -> TrainedAs:
    return TrainedAs.of_run({"job": rows.read(file).spec}, str(file))


def _load_policy(file: Path, folder: Path, plan: FollowPlan) -> Policy:
    trained = Path(_trained_as(folder / rows.FILE).algorithm)
    own = plan.algorithm is not None and plan.algorithm.name == trained.name
    policy = Policy.load(file, plan.algorithm if own else None)
    needed = {"job": JOB, "facts": dict, "step": int}
    schema.check(policy.info, needed, f"{file}: not of a training run")
    return policy


def _check_fit(folder: Path, plan: FollowPlan) -> None:
    """Before training is asked for snapshots: whether they will fit, if the data can still tell."""
    trained = _trained_as(folder / rows.FILE)
    env, how = plan.of(trained, folder)
    try:
        data = load(trained.data, verify=False)
    except (ValueError, OSError):  # moved, or named from elsewhere: the first snapshot tells
        return
    with open_evaluator(env, how, Interface.of_data(data, trained.stack)):
        """Opening checks it."""


def _evaluate_one(
    folder: Path, policy: Policy, plan: FollowPlan, final: bool
) -> Iterator[Evaluated]:
    """Figures of one policy, added to the file; nothing where they are on disk already."""
    trained = policy.trained
    env, how = plan.of(trained, folder)
    evaluated = {"env": env, "evaluated": plan.noted(trained, folder)}
    facts = with_reference({**trained.facts, **evaluated}, env)
    file = folder / rows.EVALUATION
    if file.exists():
        run = rows.read(file)
        if run.facts != facts:
            raise _other_plan(file, run)
    else:
        run = rows.Run(rows.read(folder / rows.FILE).job, policy.info["job"], facts, [])
    step = trained.step or 0
    fresh = []
    if not any(row.step == step for row in run.rows):
        figures = evaluate(policy, env, how, plan.seed).figures(run.facts)
        fresh = [rows.Row(step, name, value, n) for name, (value, n) in figures.items()]
    if final:
        by_step: dict[int, Figures] = {}
        for row in sorted([*run.rows, *fresh], key=lambda row: row.step):
            by_step.setdefault(row.step, {})[row.metric] = (row.value, row.n)
        fresh += final_rows(step, list(by_step.values())[-trained.averaged :])
        fresh.append(rows.Row(step, rows.FINISHED, 1.0, 1))
    if fresh:
        rows.write(run._replace(rows=[*run.rows, *fresh]), file)
        yield Evaluated(folder, step, {row.metric: row.value for row in fresh})


def _other_plan(file: Path, run: rows.Run) -> ValueError:
    return ValueError(
        f"{file}: was evaluated otherwise ({json.dumps(run.facts.get('evaluated'))}); give the "
        "same environment, episodes, epsilon, seed and legal, or move the file away"
    )
