"""`rbve reproduce`."""

import importlib
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from rbve.cli import _console
from rbve.cli._arguments import ClusterName, ExecutorName, Gpus, cluster_of, need_one
from rbve.paper import experiments
from rbve.sweep.executors import DEFAULT

RESUMES = True
_EXPERIMENTS = "; ".join(f"{name}: {experiments.summary(name)}" for name in experiments.names())
_NAMES = f"One or more of {_EXPERIMENTS}; or all; or a path to a .py file of your own."


def command(
    name: Positional[Annotated[tuple[str, ...], arg(metavar="NAME", help=_NAMES)]],
    /,
    scale: Literal["quick", "desk", "paper"] = "quick",
    out: Path = Path("study"),
    noise: tuple[float, ...] = (),
    env: tuple[str, ...] = (),
    packed: Path | None = None,
    part: Literal["all", "ordinary", "longer"] = "all",
    executor: ExecutorName = DEFAULT,
    cluster: ClusterName = None,
    gpus: Gpus = 0.0,
) -> None:
    """Run experiments of the paper, or your own: record, train, evaluate; then `rbve report OUT`.

    Run the same command again after an interruption: recordings, runs and rows go on where they
    stopped. Experiments in one folder share recordings and equal runs.

    Args:
        scale: quick = minutes, desk = hours on a few cores, paper = the paper's numbers
            (with memory its number of updates, on levels and networks as small as at desk).
        out: Folder for recordings, runs and rows.
        noise: Levels of noise in place of the experiment's own, e.g. 0 0.1 0.2 0.3 0.4 0.5.
        env: Record and train in these environments now, and in the others another time.
        packed: Results that `rbve pack` kept: what is finished there is neither recorded nor
            trained again. `rbve pack PACKED OUT --out PACKED` then adds what is new.
        part: Runs of the usual length, or those three times as long (on the first recording of
            each kind of data) that tell whether the usual length suffices; desk and paper scale.
    """
    from rbve import backend
    from rbve.files import locked
    from rbve.paper import reproduce as study

    need_one("NAME", name)
    backend.prepare()
    loaded = experiments.load_all(name)
    trained = {
        k: each.with_noise(noise) if noise else each
        for k, each in loaded.items()
        if isinstance(each, experiments.Experiment)
    }
    if noise and not trained:
        raise ValueError(f"--noise is for experiments with data; {', '.join(loaded)} needs none")
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out}: is a file; give a folder with --out")
    if part == "longer" and not any(
        each.at(study.scale_named(scale)).longer for each in trained.values()
    ):
        raise ValueError(f"--part longer: there are none at --scale {scale}; use desk or paper")
    for asked in trained.values():
        study.check(study.in_envs(asked, env), study.scale_named(scale))
    with locked(out):
        for each, experiment in loaded.items():
            if isinstance(experiment, experiments.Theory):
                _run_theory(each, experiment, scale, out / "theory" / each)
        if trained:
            _run_study(trained, scale, out, (executor, cluster, gpus), packed, env, part)
    _console.tell(f"done: `rbve report {out} --out {out.name}.html` shows it")


def _run_theory(name: str, experiment: experiments.Theory, scale: str, out: Path) -> None:
    """Rows first, then the figures drawn from them."""
    from rbve import rows
    from rbve.files import write_atomically
    from rbve.paper._pages import theory

    with _console.bar(name, None, ""):
        runs = importlib.import_module(f"rbve.paper.theory.{experiment.module}").run(scale)
        for run in runs:
            rows.write(run, out / "rows" / f"{run.job}.jsonl")
        for figure, png in theory.pictures(experiment.module, runs).items():
            file = out / f"{figure}.png"
            write_atomically(file, png)
            _console.tell(f"figure: {file}")


def _run_study(
    chosen: dict[str, experiments.Experiment],
    scale: str,
    out: Path,
    where: tuple[str, str | None, float],  # executor, cluster, accelerators of a task
    packed: Path | None,
    envs: tuple[str, ...],
    part: Literal["all", "ordinary", "longer"],
) -> None:
    from rbve.audit.verdict import counted
    from rbve.data.manifest import is_recorded
    from rbve.paper import audits, frames, results
    from rbve.paper import reproduce as study
    from rbve.training.run import is_finished

    size = study.scale_named(scale)
    kept = results.kept(packed) if packed else study.NOTHING
    for name, experiment in chosen.items():
        _console.show_notes(results.changes(out, name, experiment))
    chosen_parts = [study.in_envs(each, envs) for each in chosen.values()]
    recordings = study.recordings(chosen_parts, size, out, kept, part)
    missing = [each for each in recordings if not is_recorded(each.folder(out))]
    with _console.bar(f"recording {counted(len(missing), 'dataset')}", len(missing), "") as bar:
        needless = study.needless(chosen_parts, size, out)
        study.record_all(recordings, out, lambda each, *more: bar.advance(*more), needless)
    with _console.bar("auditing the data", len(recordings), "datasets") as bar:
        audits.write_audits(out, lambda recording: bar.advance(1, None))
    frames.write_strips(out)
    asked = {"ordinary": (study.jobs,), "longer": (study.longer_jobs,)}
    jobs = {
        job.id: job
        for each in chosen.values()
        for plan in asked.get(part, (study.jobs, study.longer_jobs))
        for job in plan(each, size, out, kept)
    }
    for name, experiment in chosen.items():
        for env, reason in study.left_out(experiment, size, out).items():
            _console.tell(f"{name}: {env} is left out: {reason}")
    if not jobs:
        raise ValueError(f"no data counts, so there is nothing to train; recordings are in {out}")
    due = study.unfinished(list(jobs.values()), kept, envs)
    left = [job for job in due if not is_finished(out / "runs" / job.id)]
    updates = sum(job.steps for job in left)
    with _console.bar(f"training {len(left)} of {len(jobs)} runs", updates, "updates") as bar:
        executor, place, gpus = where
        cluster = cluster_of(place, gpus, bar.cluster)
        study.run(chosen, size, out, bar.trained, executor, kept, envs, part, cluster)
