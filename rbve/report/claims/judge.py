"""Every claim judged by the rows of a study, and of its own experiment alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rbve import rows
from rbve.files import read_json
from rbve.report.claims import CLAIMS, Claim
from rbve.report.finals import finals
from rbve.report.rules import Judgement
from rbve.rows import Run

EXPERIMENTS = "experiments"  # folder of a study: which jobs an experiment consists of
THEORY = "theory"  # folder of a study: theory/<experiment>/rows


class Judged(NamedTuple):
    claim: Claim
    judgement: Judgement


def members(paths: Iterable[Path]) -> dict[str, set[str]]:
    """experiment -> its jobs, of the studies among the paths."""
    found: dict[str, set[str]] = {}
    for path in paths:
        for file in sorted((path / EXPERIMENTS).glob("*.json")):
            content = read_json(file)
            jobs = content.get("jobs") if isinstance(content, dict) else None
            if not isinstance(jobs, list) or not all(type(job) is str for job in jobs):
                raise ValueError(f"{file}: lists no jobs; run `rbve reproduce {file.stem}` again")
            found.setdefault(file.stem, set()).update(jobs)
    return found


def theory_runs(paths: Iterable[Path]) -> dict[str, list[Run]]:
    """experiment -> runs, of those that need no data."""
    found: dict[str, list[Run]] = {}
    for path in paths:
        for folder in sorted((path / THEORY).glob("*/rows")):
            runs = [rows.read(file) for file in sorted(folder.rglob("*.jsonl"))]
            found.setdefault(folder.parent.name, []).extend(runs)
    return found


def judge_all(paths: Sequence[Path], runs: Sequence[Run]) -> list[Judged]:
    """Every claim, or nothing where no study was run."""
    experiments, theory = members(paths), theory_runs(paths)
    if not experiments and not theory:
        return []
    evaluated = finals(runs)

    def evidence(claim: Claim) -> Sequence[Any]:
        if claim.experiment in theory:
            return theory[claim.experiment]
        jobs = experiments.get(claim.experiment, set())
        return [each for each in evaluated if each.job in jobs]

    return [Judged(claim, claim.judge(evidence(claim))) for claim in CLAIMS]
