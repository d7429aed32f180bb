"""Runs of a study, made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rbve.data import Dataset, Episode
from rbve.data.formats import native
from rbve.data.source import parts_of
from rbve.files import write_json
from rbve.paper._pages.gather import Study
from rbve.paper.finals import Final, final_of
from rbve.paper.results import Listed
from rbve.rows import Row, Run, write
from rbve.spec import Spec

FACTS = {
    "episodes": 100,
    "transitions": 900,
    "actions": 3,
    "behaviour_return": 0.2,
    "best_return": 1.0,
    "random_return": -0.6,
    "reference_return": 1.0,
}


def make_run(
    algorithm: str = "dqn",
    seed: int = 0,
    final: Mapping[str, float] | None = None,
    curve: Sequence[tuple[int, str, float]] = (),
    rate: float = 3e-4,
    settings: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Run:
    """`data`: env, and fields of a DataRef; `source`: noise, epsilon, behaviour."""
    own = {"env": "catch", "keep": 0.1, **(data or {})}
    env = own.pop("env")
    made = {"behaviour": "online dqn", "noise": 0.0, "epsilon": None, "recorded_episodes": 1000}
    made |= source or {}
    folder = f"study/data/{env}-{made['noise']:g}/{seed}"
    own |= {"path": folder, "keep_seed": seed, "seed": seed, "learning_rate": rate}
    own |= {"algorithm": algorithm, "steps": 1000, "env": env, **(settings or {})}
    job = Spec.of(**own).resolved()
    rows = [Row(step, metric, value, 100) for step, metric, value in curve]
    rows += [Row(1000, f"final/{name}", value, 500) for name, value in (final or {}).items()]
    return Run(job.id, job.to_json(), {**FACTS, "env": env, **(facts or {}), "source": made}, rows)


def scored(algorithm: str, scores: Sequence[float], **options: Any) -> list[Run]:
    """A run per dataset with its normalised score; the return is a hundredth of it."""
    return [
        make_run(algorithm, seed, {"normalised_return": score, "return": score / 100}, **options)
        for seed, score in enumerate(scores)
    ]


def finals_of(runs: Sequence[Run]) -> list[Final]:
    return [
        final_of(run, {row.metric.removeprefix("final/"): row.value for row in run.rows
                       if row.metric.startswith("final/")})
        for run in runs
    ]  # fmt: skip


def study_of(runs: Sequence[Run], experiment: str = "bsuite") -> Study:
    found = {each.job: each for each in finals_of(runs) if each.values}
    jobs = {run.job: run for run in runs}
    return Study((), jobs, {experiment: Listed(set(jobs))}, found)


def steady(runs: Sequence[Run]) -> list[Run]:
    """The same, at every evaluation as in the end."""
    return [
        run._replace(
            rows=[
                *(row._replace(step=step, metric=row.metric.removeprefix("final/"))
                  for step in (250, 500, 750, 1000) for row in run.rows),
                *run.rows,
            ]
        )
        for run in runs
    ]  # fmt: skip


def longer(runs: Sequence[Run], times: int = 3) -> list[Run]:
    """Those on the first dataset, with more updates."""
    return [
        run._replace(
            job=f"{run.job}-longer",
            spec={**run.spec, "steps": times * run.spec["steps"]},
            rows=[row._replace(step=times * row.step) for row in run.rows],
        )
        for run in runs
        if run.spec["data"]["keep_seed"] == 0
    ]


def write_study(
    out: Path,
    experiments: Mapping[str, Sequence[Run]],
    missing: int = 0,
    checked: Mapping[str, Sequence[Run]] | None = None,
) -> list[Run]:
    """On disk, without the last `missing` runs of each experiment; gives the runs written.

    `checked`: by experiment, the runs that were trained longer.
    """
    written = {}
    for name, runs in experiments.items():
        more = (checked or {}).get(name, [])
        listed = {"jobs": [run.job for run in runs], "longer": [run.job for run in more]}
        write_json(out / "experiments" / f"{name}.json", listed)
        for run in (*runs[: len(runs) - missing], *more):
            write(run, out / "runs" / run.job / "rows.jsonl")
            written[run.job] = run
    return list(written.values())


def write_store(folder: Path, episodes: int, seed: int) -> Dataset:
    """Random walks of nine steps; a fifth of the executed actions are others than those chosen."""
    rng = np.random.default_rng(seed)

    def episode() -> Episode:
        chosen = np.append(rng.integers(3, size=9), -1)
        executed = np.where((rng.random(10) < 0.2) & (chosen >= 0), (chosen + 1) % 3, chosen)
        reward = np.append(np.zeros(8), [rng.choice([-1.0, 1.0]), 0.0])
        obs = rng.normal(size=(10, 4)).astype(np.float32)
        return Episode(obs, chosen, reward, terminated=True, executed=executed)

    data = Dataset.from_episodes([episode() for _ in range(episodes)], ("left", "stay", "right"))
    native.write(parts_of(data), folder)
    return data
