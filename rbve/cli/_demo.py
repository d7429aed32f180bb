"""The demo's steps: record, train, report. Every step keeps what an earlier run finished."""

from __future__ import annotations

import time
from pathlib import Path

from rbve import api, rows
from rbve.audit.verdict import counted
from rbve.behaviours.record import Progress, default_episodes
from rbve.cli import _console
from rbve.data.manifest import fingerprint, is_recorded
from rbve.paper.experiments.demo import PROBLEMS, Problem
from rbve.sweep import grid
from rbve.sweep.devices import on_all_devices
from rbve.sweep.run import run_jobs
from rbve.training.spec import DataRef, Spec, resolve


def run(out: Path) -> Path:
    """All problems; returns the page."""
    started = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    record_all(out)
    folders = train_all(out)
    page = api.write_report(folders, out / "report.html")
    _console.show_runs(rows.find(folders), as_json=False)
    _console.output().print(
        f"{time.monotonic() - started:.0f} s. Open {page} in a browser; data in {out / 'data'}, "
        f"policies in {out / 'runs'}.",
        soft_wrap=True,
    )
    return page


def dataset_folder(out: Path, problem: Problem, seed: int) -> Path:
    return out / "data" / problem.env / str(seed)


def record_all(out: Path) -> None:
    # Longest first, so that no core waits at the end.
    wanted = sorted(
        ((problem, seed) for problem in PROBLEMS for seed in problem.seeds),
        key=lambda item: item[0].env != "cartpole",
    )
    missing = [
        (problem, seed)
        for problem, seed in wanted
        if not is_recorded(dataset_folder(out, problem, seed))
    ]
    total = sum(default_episodes(problem.env) for problem, _ in missing)
    with _console.bar(f"recording {counted(len(missing), 'dataset')}", total, "episodes") as bar:

        def one(item: tuple[Problem, int]) -> None:
            problem, seed = item
            seen = 0

            def note(progress: Progress) -> None:
                nonlocal seen
                bar.advance(progress.episodes - seen, progress.last_return)
                seen = progress.episodes

            api.record(
                problem.env,
                dataset_folder(out, problem, seed),
                seed=seed,
                overwrite=True,
                on_progress=note,
            )

        on_all_devices(one, missing)


def train_all(out: Path) -> list[Path]:
    jobs = []
    for problem in PROBLEMS:
        specs = [
            resolve(Spec(algorithm=name, steps=problem.steps, env=problem.env), settings)
            for name, settings in problem.methods
        ]
        for seed in problem.seeds:
            folder = dataset_folder(out, problem, seed)
            mark = fingerprint(folder)
            ref = DataRef(str(folder), problem.keep, keep_seed=seed, fingerprint=mark)
            jobs += grid.jobs([ref], specs, [seed], [3e-4], problem.target_period)
    with _console.bar(
        f"training {len(jobs)} members", sum(job.spec.steps for job in jobs), "updates"
    ) as bar:
        return run_jobs(
            jobs,
            out / "runs",
            lambda progress: bar.advance(progress.job.spec.every, progress.metrics.get("return")),
        )
