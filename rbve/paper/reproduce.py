"""From an experiment to recordings and jobs, all kept in one folder and resumed from it.

OUT/data/<recording>/<seed>    see rbve/paper/recordings.py; shared by all experiments
OUT/runs/<job>/rows.jsonl      results; equal jobs are trained once
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from rbve import envs
from rbve.behaviours.online import came_half_way, has_learned
from rbve.data.manifest import fingerprint, is_recorded
from rbve.paper.experiments import SCALES, Data, Experiment, Method, Scale, Settings
from rbve.paper.recordings import learned_by, recording
from rbve.paper.recordings import record_all as record_all
from rbve.paper.results import Kept, Listed, write_listed
from rbve.parts import DataRef
from rbve.spec import Spec
from rbve.sweep.cluster import Cluster
from rbve.sweep.executors import DEFAULT
from rbve.sweep.recordings import Recording
from rbve.sweep.run import run_jobs
from rbve.training.run import Progress

_SLOW = {"iqn": 0, "rem": 1, "bcq": 2}  # begun first, so that no core waits for them at the end
NOTHING = Kept()
Part = Literal["all", "ordinary", "longer"]  # of the runs; longer ones tell whether sizes suffice
_LEARNING_RATE = 3e-4  # where a method says none (the paper's largest)


def scale_named(name: str) -> Scale:
    if name not in SCALES:
        raise ValueError(f"unknown scale {name!r}; use {', '.join(SCALES)}")
    return SCALES[name]


def check(experiment: Experiment, scale: Scale) -> None:
    """Refuse what could not be trained, before anything is recorded."""
    try:
        for data in experiment.data:
            envs.check_known(data.env)
        for method in experiment.methods:
            for tried in method.sweep:
                env = experiment.data[0].env
                job(DataRef(""), env, method, tried, experiment.at(scale), 0, experiment.spec)
    except (TypeError, ValueError) as error:
        if experiment.file:
            raise ValueError(f"{experiment.file}: {error}") from None
        raise


def in_envs(experiment: Experiment, envs: Collection[str]) -> Experiment:
    """The same in some of its environments; in all where none is named.

    Raises:
        ValueError: It has none of them.
    """
    own = tuple(dict.fromkeys(data.env for data in experiment.data))
    if envs and not set(envs) & set(own):
        raise ValueError(f"--env: {', '.join(envs)} is not among {', '.join(own)}")
    chosen = tuple(data for data in experiment.data if not envs or data.env in envs)
    return replace(experiment, data=chosen)


def recordings(
    experiments: Sequence[Experiment],
    scale: Scale,
    out: Path = Path(),
    kept: Kept = NOTHING,
    part: Part = "all",
) -> list[Recording]:
    """All datasets needed, each once; those that others build on first, then the longest.

    First seeds come before the others: they may show that those are needless. So are those of
    which every run is among the packed ones. Longer runs alone need the first seed's.
    """
    wanted = {
        each
        for experiment in experiments
        for data in experiment.data
        for seed in data.seeds(1 if part == "longer" else experiment.at(scale).datasets)
        for own in [recording(data, experiment.at(scale), seed)]
        if not _is_spared(experiment, data, scale, seed, out, kept)
        for each in (own, own.online)
    }
    order = {"cartpole": 0, "mountain_car": 1}

    def place(r: Recording) -> tuple[Any, ...]:
        first = (r.expert is not None, r.seed > 0, -r.steps)
        return *first, order.get(r.env, 2), r.env, r.noise, r.seed

    return sorted(wanted, key=place)


def jobs(experiment: Experiment, scale: Scale, out: Path, kept: Kept = NOTHING) -> list[Spec]:
    """Every method and setting on every dataset that counts and is recorded, here or where the
    packed runs come from."""
    return [job for job, _ in _planned(experiment, experiment.at(scale), out, kept)]


def longer_jobs(
    experiment: Experiment, scale: Scale, out: Path, kept: Kept = NOTHING
) -> list[Spec]:
    """Those that tell whether `steps` suffice: on the first dataset of each kind, each method's
    first setting with more updates. All else is as in jobs(), so they begin with the same ones."""
    sized = experiment.at(scale)
    if not sized.longer:
        return []
    planned = _planned(experiment, sized, out, kept)
    return [_longer(job, sized) for job, is_first in planned if is_first]


def _longer(job: Spec, scale: Scale) -> Spec:
    return job.varied(steps=scale.longer * job.steps)


def _planned(
    experiment: Experiment, scale: Scale, out: Path, kept: Kept
) -> Iterator[tuple[Spec, bool]]:
    """Jobs, each with whether it is the first setting on the first dataset."""
    marks: dict[Path, str] = {}
    for data in experiment.data:
        if _shortfall(data, experiment, scale, out):
            continue
        for seed in data.seeds(scale.datasets):
            folder = recording(data, scale, seed).folder(out)
            if folder not in marks and is_recorded(folder):
                marks[folder] = fingerprint(folder)
            if folder in marks:
                yield from _jobs_on(experiment, data, scale, seed, folder, marks[folder])
            else:
                yield from _kept_jobs(experiment, data, scale, seed, out, kept)


def _jobs_on(
    experiment: Experiment, data: Data, scale: Scale, seed: int, folder: Path, mark: str
) -> list[tuple[Spec, bool]]:
    """Every method and setting on one dataset, known by its fingerprint; which come first."""
    ref = DataRef(str(folder), data.keep, seed, data.side, data.action, mark)
    share = f"keep={data.keep:g} side={data.side} action={data.action}"
    label = {"group": f"{folder.parent.name} {share}", "replicate": mark}
    return [
        (
            job(ref, data.env, method, tried, scale, seed, experiment.spec).varied(**label),
            seed == data.first and place == 0,
        )
        for method in experiment.methods
        for place, tried in enumerate(method.sweep[: scale.settings])
    ]


def _kept_jobs(
    experiment: Experiment, data: Data, scale: Scale, seed: int, out: Path, kept: Kept
) -> list[tuple[Spec, bool]]:
    """Those on a dataset that is not here, if packed runs know it at this scale."""
    folder = recording(data, scale, seed).folder(out)
    for mark in kept.fingerprints.get(folder.relative_to(out).as_posix(), ()):
        found = _jobs_on(experiment, data, scale, seed, folder, mark)
        if any(job.id in kept.finished for job, _ in found):
            return found
    return []


def _is_spared(
    experiment: Experiment, data: Data, scale: Scale, seed: int, out: Path, kept: Kept
) -> bool:
    sized = experiment.at(scale)
    found = _kept_jobs(experiment, data, sized, seed, out, kept)
    asked = [job for job, _ in found]
    asked += [_longer(job, sized) for job, is_first in found if is_first and sized.longer]
    return bool(found) and all(job.id in kept.finished for job in asked)


def left_out(experiment: Experiment, scale: Scale, out: Path) -> dict[str, str]:
    """environment -> why its data does not count; needs the recordings."""
    sized = experiment.at(scale)
    reasons = {data.env: _shortfall(data, experiment, sized, out) for data in experiment.data}
    return {env: reason for env, reason in reasons.items() if reason}


def needless(
    experiments: Sequence[Experiment], scale: Scale, out: Path
) -> Callable[[Recording], bool]:
    """Tells whether all who want a recording leave its environment out, as far as is recorded."""
    out = out.absolute()

    def told(each: Recording) -> bool:
        return all(
            _shortfall(data, experiment, experiment.at(scale), out)
            for experiment in experiments
            for data in experiment.data
            for own in [recording(data, experiment.at(scale), each.seed)]
            if each in (own, own.online) and each.seed in data.seeds(experiment.at(scale).datasets)
        )

    return told


def _shortfall(data: Data, experiment: Experiment, scale: Scale, out: Path) -> str:
    """How an agent that recorded this data fell short of what the experiment asks; else nothing."""
    if not experiment.learned and not experiment.best:
        return ""
    best = experiment.best.get(data.env)
    if best is not None and scale.episodes < 1:
        return ""  # a shortened recording is to see that all works; nobody learns much in it
    for seed in data.seeds(scale.datasets):
        online = recording(data, scale, seed).online.folder(out)
        if not is_recorded(online):
            continue
        found = learned_by(online)
        reference = found["reference"]
        random, reached = reference["random"], reference["online"]
        if best is None and not has_learned(found, experiment.learned):
            return (
                f"the agent of seed {seed} ended at a return of {found['late_return']:.3g}, below "
                f"{experiment.learned:g} times the random policy's {random:.3g}"
            )
        if best is not None and not came_half_way(found, best):
            return (
                f"the agent of seed {seed} came to {reached:.3g}, not half way from the random "
                f"policy's {random:.3g} to {best:.3g}"
            )
    return ""


def job(
    ref: DataRef,
    env: str,
    method: Method,
    tried: Settings,
    scale: Scale,
    seed: int,
    fields: Settings = MappingProxyType({}),
) -> Spec:
    """`fields`: further ones of its Spec."""
    own = {
        "algorithm": method.algorithm,
        "steps": scale.steps,
        "every": max(1, scale.steps // scale.evaluations),
        "env": env,
        "eval_episodes": scale.eval_episodes,
        "batch_size": scale.batch_size,
        "learning_rate": _LEARNING_RATE,
        "target_period": scale.period,
        "seed": seed,
    }
    return Spec.of(data=ref, **(own | {**fields, **method.settings, **tried})).resolved()


def unfinished(jobs: Sequence[Spec], kept: Kept, envs: Collection[str]) -> list[Spec]:
    """Without those among the packed ones, and in the environments named or in all."""
    due = [job for job in jobs if job.id not in kept.finished]
    return [job for job in due if not envs or job.evaluation.env in envs]


def run(
    experiments: Mapping[str, Experiment],
    scale: Scale,
    out: Path,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    executor: str = DEFAULT,
    kept: Kept = NOTHING,
    envs: Collection[str] = (),
    part: Part = "all",
    cluster: Cluster | None = None,
) -> list[Path]:
    """Train every job of every experiment once, but those among the packed ones, in the
    environments named or in all; returns the folders of their rows."""
    base: list[Spec] = []
    longer: list[Spec] = []
    for name, experiment in experiments.items():
        mine = jobs(experiment, scale, out, kept)
        more = longer_jobs(experiment, scale, out, kept)
        known = Listed(
            jobs={job.id for job in mine},
            longer={job.id for job in more},
            left_out=left_out(experiment, scale, out),
            outline=experiment.outline if experiment.file else None,
        )
        write_listed(out, name, known)
        base += unfinished(mine, kept, envs) if part != "longer" else []
        longer += unfinished(more, kept, envs) if part != "ordinary" else []
    slow_first = partial(sorted, key=lambda job: _SLOW.get(job.algorithm, len(_SLOW)))
    # Longer ones last: without the others they tell nothing.
    ordered = [*slow_first(base), *slow_first(longer)]
    return run_jobs(ordered, out / "runs", on_progress, executor=executor, cluster=cluster)
