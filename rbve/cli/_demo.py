"""The demo: record, audit, train, report. Every step keeps what an earlier run finished.

Two problems, each a tenth of the episodes that an online DQN recorded while it learned. On cartpole
most of those episodes are poor and the choice of method matters, if training is long enough to
tell; on catch the agent learns soon, so that cloning its actions suffices. What is said of either
is computed from the runs.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rbve import api, rows
from rbve.audit.verdict import counted
from rbve.behaviours.record import Progress
from rbve.cli import _console
from rbve.cli._audit import SIGNS, summary
from rbve.data.manifest import fingerprint, is_recorded
from rbve.report.summary import group
from rbve.report.words import advice
from rbve.spec import Spec
from rbve.sweep import grid
from rbve.sweep.devices import on_all_devices
from rbve.sweep.run import run_jobs

METHODS = ("rbve", "bve", "dqn", "filtered_bc", "bc")
LAMBDA = 0.05  # of R-BVE's ranking term; chosen by looking at the studies of both (results/)
KEEP = 0.1  # share of the recorded episodes that trains, as in the paper
SEEDS = (0, 1, 2)  # one recorded dataset each
_EVALUATIONS, EPISODES = 10, 30  # of a run, and per evaluation


@dataclass(frozen=True)
class DemoProblem:
    env: str
    episodes: int  # recorded per dataset
    steps: int  # updates per run


# Longest first, so that no core waits at the end.
PROBLEMS = (DemoProblem("cartpole", 1_000, 100_000), DemoProblem("catch", 2_000, 20_000))


def run(out: Path) -> Path:
    """All problems; returns the page."""
    started = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    _record(out)
    _audit(out)
    folders = _train(out)
    page = api.write_report(folders, out / "report.html")
    runs = rows.find(folders)
    _console.show_runs(runs, as_json=False)
    console = _console.output()
    for problem in group(runs):
        console.print(f"{problem.label}: {advice(problem)}", style="bold", soft_wrap=True)
    console.print(
        f"{time.monotonic() - started:.0f} s. Open {page} in a browser; data in {out / 'data'}, "
        f"policies in {out / 'runs'}.",
        soft_wrap=True,
    )
    return page


def _store(out: Path, problem: DemoProblem, seed: int) -> Path:
    return out / "data" / problem.env / str(seed)


def _record(out: Path) -> None:
    missing = [
        (problem, seed)
        for problem in PROBLEMS
        for seed in SEEDS
        if not is_recorded(_store(out, problem, seed))
    ]
    total = sum(problem.episodes for problem, _ in missing)
    with _console.bar(f"recording {counted(len(missing), 'dataset')}", total, "episodes") as bar:

        def record(item: tuple[DemoProblem, int]) -> None:
            problem, seed = item
            store, seen = _store(out, problem, seed), 0

            def note(progress: Progress) -> None:
                nonlocal seen
                bar.advance(progress.episodes - seen, progress.last_return)
                seen = progress.episodes

            plan: Any = {"seed": seed, "overwrite": True, "on_progress": note}
            api.record(problem.env, store, problem.episodes, **plan)

        on_all_devices(record, missing)


def _audit(out: Path) -> None:
    """What the data supports, before any training: the verdict on each problem's first dataset."""
    for problem in PROBLEMS:
        store = _store(out, problem, SEEDS[0])
        audit = api.inspect(api.load(store).subsample(KEEP, SEEDS[0]))
        _console.output().print(
            f"{store}, {KEEP:.0%} of its episodes: {counted(audit.counts.episodes, 'episode')}, "
            f"{counted(audit.counts.transitions, 'decision')}; audit: {SIGNS[audit.verdict]} "
            f"{summary(audit)}",
            soft_wrap=True,
        )


def _train(out: Path) -> list[Path]:
    jobs = []
    for problem in PROBLEMS:
        base = Spec.of(keep=KEEP, env=problem.env, eval_episodes=EPISODES)
        base = base.varied(steps=problem.steps, every=problem.steps // _EVALUATIONS)
        for seed in SEEDS:
            store = _store(out, problem, seed)
            mark = fingerprint(store)
            own = base.varied(path=store, fingerprint=mark, keep_seed=seed, seed=seed)
            own = own.varied(group=problem.env, replicate=mark)
            jobs += grid.jobs(own, {"algorithm": METHODS, "lam": [LAMBDA]})
    updates = sum(job.steps for job in jobs)
    with _console.bar(f"training {counted(len(jobs), 'run')}", updates, "updates") as bar:
        return run_jobs(jobs, out / "runs", bar.trained)
