"""The paper's empirical claims, each with the rule that judges it here.

A file of this folder holds CLAIMS, and its presence is its registration; PLACE orders the files on
the page. Rules and thresholds stood in these files before any row they judge was read, but for
theory's and what docs/studies.md lists. Claims about Atari and DeepMind Lab are judged on bsuite's
environments where their question can be asked there, and say so; once more on MinAtar's games and
on levels with memory, by the same rules, written down before those were run. A claim of theory is
judged by its experiment's runs, the others by final scores.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rbve import registry
from rbve.paper.experiments import names
from rbve.paper.finals import Final, finals
from rbve.paper.judging import sizes
from rbve.paper.judging.verdicts import Judgement, not_run
from rbve.paper.results import Listed, listed, theory_runs
from rbve.report.labels import METHODS, WITH_MEMORY
from rbve.rows import Run

FOR_ATARI, FOR_LAB = "bsuite for Atari", "bsuite for DeepMind Lab"
# What bsuite cannot stand in for.
ATARI, LAB = "Atari's own scores", "the paper's own table for DeepMind Lab"
OWN_TABLES = "the paper's own tables"


class Second(NamedTuple):
    """A second kind of data that stands in for the paper's."""

    where: str
    about: str  # what it stands in for
    experiments: Mapping[str, str]  # by the experiment that asks the same first


class _Again(NamedTuple):
    """Whose runs judge a claim a second time."""

    where: str
    experiment: str


MINATAR = Second(
    "MinAtar",
    "Atari",
    {
        "": "minatar",
        "bsuite": "minatar",
        "fractions": "minatar_fractions",
        "reward_distribution": "minatar_rewards",
        "ranking_strength": "minatar_strength",
    },
)
MEMORY = Second("levels with memory", "DeepMind Lab", {"": "memory", "coverage": "memory_coverage"})
SECOND = {FOR_ATARI: MINATAR, ATARI: MINATAR, FOR_LAB: MEMORY, LAB: MEMORY}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and the rule that judges it."""

    text: str
    paper: str  # where it stands
    rule: str  # in words
    judge: Callable[[Sequence[Any]], Judgement]  # of Finals; of Runs where it is theory
    here: str = "bsuite, 10% of the episodes"  # what stands in for the paper's data
    experiment: str = "bsuite"  # whose runs are judged; "" = none are needed
    printed: str = ""  # the paper's own numbers, where it prints any
    # Of a main claim, which opens the page: the ending of the figures' names that show it.
    figure: str = ""

    @property
    def again(self) -> _Again | None:
        """Whose runs judge it a second time, by the same rule; None = nothing else stands in."""
        second = SECOND.get(self.here)
        return second and _Again(second.where, second.experiments[self.experiment])


@cache
def all_claims() -> tuple[Claim, ...]:
    """Of every file of this folder, by PLACE and then by name."""
    files = registry.Registry("claims", __name__, __file__)
    modules = [files.load(name) for name in files.names()]
    modules.sort(key=lambda module: getattr(module, "PLACE", len(modules)))
    return tuple(claim for module in modules for claim in module.CLAIMS)


class Judged(NamedTuple):
    """A claim and what was made of it."""

    claim: Claim
    judgement: Judgement
    again: Judgement | None = None  # on the second kind of data, where the claim has one


def judge_all(paths: Sequence[Path], runs: Sequence[Run]) -> list[Judged]:
    """Every claim, or nothing where none of the paper's experiments was run."""
    experiments, theory = listed(paths), theory_runs(paths)
    if not set(experiments) & set(names()) and not theory:
        return []
    evaluated = finals(runs)

    @cache
    def evidence(experiment: str) -> list[list[Final]]:
        """Its runs, and those that were trained longer."""
        known = experiments.get(experiment, Listed())
        kinds = (known.jobs, known.longer)
        return [[each for each in evaluated if each.job in jobs] for jobs in kinds]

    def judged(claim: Claim, experiment: str) -> Judgement:
        if experiment in theory:
            return claim.judge(theory[experiment])
        return sizes.judged(claim.judge, *evidence(experiment))

    def again(claim: Claim) -> Judgement | None:
        if claim.again is None:
            return None
        experiment = claim.again.experiment
        # Without runs the paper's own table would be judged once more.
        judgement = judged(claim, experiment) if evidence(experiment)[0] else not_run()
        measured = judgement.measured
        # Where networks have a memory, methods are called what they are there.
        for algorithm, name in WITH_MEMORY.items() if SECOND[claim.here] is MEMORY else ():
            measured = measured.replace(METHODS[algorithm][0], name)
        return replace(judgement, measured=measured)

    return [Judged(claim, judged(claim, claim.experiment), again(claim)) for claim in all_claims()]
