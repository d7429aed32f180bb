"""Every claim judged by the rows of a study, and of its own experiment alone.

Claims about Atari and DeepMind Lab are judged twice, by one rule: where bsuite (or the paper's own
table) stands in for them, and where MinAtar or levels with memory do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rbve.paper.claims import MEMORY, Claim, all_claims
from rbve.paper.experiments import names
from rbve.paper.finals import finals
from rbve.paper.judging.verdicts import Judgement, not_run
from rbve.paper.results import jobs_of, theory_runs
from rbve.report.labels import METHODS, WITH_MEMORY
from rbve.rows import Run


class Judged(NamedTuple):
    """A claim and what was made of it."""

    claim: Claim
    judgement: Judgement
    again: Judgement | None = None  # on the second kind of data, where the claim has one


def judge_all(paths: Sequence[Path], runs: Sequence[Run]) -> list[Judged]:
    """Every claim, or nothing where none of the paper's experiments was run."""
    experiments, theory = jobs_of(paths), theory_runs(paths)
    if not set(experiments) & set(names()) and not theory:
        return []
    evaluated = finals(runs)

    def evidence(experiment: str) -> Sequence[Any]:
        if experiment in theory:
            return theory[experiment]
        jobs = experiments.get(experiment, set())
        return [each for each in evaluated if each.job in jobs]

    def again(claim: Claim) -> Judgement | None:
        if claim.again is None:
            return None
        results = evidence(claim.again.experiment)
        judgement = claim.judge(results) if results else not_run()
        return _with_memory(judgement) if claim.again.where == MEMORY.where else judgement

    return [
        Judged(claim, claim.judge(evidence(claim.experiment)), again(claim))
        for claim in all_claims()
    ]


def _with_memory(judgement: Judgement) -> Judgement:
    """With methods called what they are where networks have a memory."""
    measured = judgement.measured
    for algorithm, name in WITH_MEMORY.items():
        measured = measured.replace(METHODS[algorithm][0], name)
    return replace(judgement, measured=measured)
