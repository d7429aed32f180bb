"""From a log to a decision: train candidates, judge them and their checkpoints, recommend.

All that takes long is kept in one folder: runs, fits, the judgement. The same call goes on after an
interruption.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rbve.data.dataset import Dataset
from rbve.data.manifest import fingerprint
from rbve.evaluation.follow import SNAPSHOTS
from rbve.off_policy.behaviour import check_source
from rbve.off_policy.details import Details, details_of
from rbve.off_policy.fits import FitPlan
from rbve.off_policy.groups import check_column
from rbve.off_policy.judge import OpePlan, OpeResult
from rbve.off_policy.log import DecisionLog
from rbve.off_policy.options import SelectOptions
from rbve.off_policy.rule import Recommendation, recommend
from rbve.off_policy.run import GAMMA, Question, answer, fit_of
from rbve.off_policy.targets import Deployment
from rbve.parts import FEWEST_EPISODES
from rbve.policy import Policy
from rbve.rows import FILE
from rbve.spec import Spec
from rbve.sweep.cluster import Cluster
from rbve.sweep.grid import identified
from rbve.sweep.run import run_jobs
from rbve.training.run import POLICY, Progress, is_finished

# Algorithms, and the settings tried of each.
CANDIDATES: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "bc": {}, "filtered_bc": {}, "bve": {}, "rbve": {"lam": (0.05, 0.5)},
    "cql": {"alpha": (0.1, 1.0)}, "bcq": {"threshold": (0.1, 0.3)},
}  # fmt: skip


@dataclass(frozen=True)
class Selection:
    result: OpeResult
    recommendation: Recommendation
    policies: Mapping[str, Policy]  # candidates and their checkpoints, by name
    files: Mapping[str, Path]
    details: Details | None  # of the policy that is recommended, or came first


def candidate_jobs(data: Path, dataset: Dataset, options: SelectOptions) -> dict[str, Spec]:
    """Jobs of the candidates that are to be trained, by name."""
    if options.runs and not options.algorithm:
        return {}
    base = Spec.of(
        path=str(data), steps=options.steps, seed=options.seed,
        gamma=GAMMA if options.gamma is None else options.gamma,
        holdout=options.holdout, holdout_seed=options.seed, hidden=options.hidden,
        memory=options.memory, every=-(-options.steps // options.checkpoints),
    )  # fmt: skip
    known = CANDIDATES if not options.algorithm else {name: {} for name in options.algorithm}
    jobs = {}
    for algorithm, settings in known.items():
        for values in itertools.product(*settings.values()):
            own = dict(zip(settings, values, strict=True))
            job = identified(base.varied(algorithm=algorithm, **own), dataset)
            words = " ".join(f"{name}={value:g}" for name, value in own.items())
            jobs[f"{job.algorithm_name} {words}".strip()] = job
    return jobs


def train_candidates(
    jobs: Mapping[str, Spec],
    out: Path,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    cluster: Cluster | None = None,
) -> dict[str, Path]:
    """Policies of all stages of all candidates: name -> file, the last stage under its own name."""
    for job in jobs.values():
        if not is_finished(out / job.id):
            (out / job.id / SNAPSHOTS).mkdir(parents=True, exist_ok=True)
    files: dict[str, Path] = {}
    folders = run_jobs(list(jobs.values()), out, on_progress, cluster=cluster)
    for name, folder in zip(jobs, folders, strict=True):
        files |= _stages(name, folder, jobs[name].steps)
    return files


def finished_runs(folders: Sequence[Path], mark: str) -> dict[str, Path]:
    """Policies of finished runs on the store with this fingerprint, in or below the folders, and of
    their stages where they were kept: name -> file. Fits to parts of it are no candidates.

    Raises:
        ValueError: A folder holds none, or two runs have one name.
    """
    files: dict[str, Path] = {}
    for folder in folders:
        every = sorted(folder.rglob(POLICY)) if folder.is_dir() else []
        found = [file for file in every if (file.parent / FILE).is_file() and _of(file) == mark]
        if not found:
            others = f" ({len(every)} of other data)" if every else ""
            raise ValueError(
                f"{folder}: no finished run on this log is in or below this folder{others}; train "
                f"with `rbve train DATA --holdout 0.2 --out {folder}`"
            )
        for file in found:
            name = file.parent.name
            if name in files and files[name].resolve() != file.resolve():
                raise ValueError(f"{file.parent}: {files[name].parent} is a run of this name too")
            steps = int(Policy.load(file).info.get("step", 0))
            files |= _stages(name, file.parent, steps)
    return files


def _of(file: Path) -> str:
    """The fingerprint of the data that a policy was trained on."""
    return str(Policy.load(file).info.get("job", {}).get("data", {}).get("fingerprint"))


def _stages(name: str, folder: Path, steps: int) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for stage in sorted((folder / SNAPSHOTS).glob("*.safetensors")):
        if int(stage.stem) < steps:
            files[f"{name} @{int(stage.stem):,}"] = stage
    return {**files, name: folder / POLICY}


def select(
    data: Path,
    dataset: Dataset,
    options: SelectOptions,
    out: Path,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    cluster: Cluster | None = None,
) -> Selection:
    """Train, on a cluster if one is given; judge, here; recommend.

    Raises:
        ValueError: The data cannot be trained on or judged by; the message says what to do.
    """
    # What may be wrong is looked at before candidates are trained.
    deployment = Deployment(options.epsilon, options.temperature)
    fit = FitPlan(options.fit_steps, seed=options.seed, out=out / "fits")
    plan = OpePlan(options.propensities, fit, options.interval, options.level)
    log = DecisionLog.of(dataset, GAMMA if options.gamma is None else options.gamma)
    if options.by is not None:
        check_column(log, options.by)
    check_source(log, options.propensities)
    jobs = candidate_jobs(data, dataset, options)
    if jobs and next(iter(jobs.values())).data.held_out(dataset) is None:  # of one, of all
        raise ValueError(
            f"{data}: {dataset.num_episodes} episodes cannot both train candidates and judge them; "
            f"give {FEWEST_EPISODES} or more"
        )
    mark = fingerprint(data)
    files = finished_runs(options.runs, mark)
    if jobs:
        files |= train_candidates(jobs, out / "runs", on_progress, cluster)
    policies = {name: Policy.load(file) for name, file in files.items()}
    question = Question(
        policies, deployment, options.gamma, options.by, fingerprint=mark,
        bellman=options.bellman,
    )  # fmt: skip
    result = answer(dataset, question, plan, on_progress)
    advice = recommend(result)
    name = advice.policy or advice.ranking[0]
    policy = policies[name]
    fits = fit_of(name, dataset, question, plan, on_progress)
    details = details_of(policy, result.log, result.propensities, fits, options.seed, options.by)
    return Selection(result, advice, policies, files, details)
