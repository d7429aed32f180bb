"""The paper's empirical claims, each with the rule that judges it here.

A file of this folder holds CLAIMS, and its presence is its registration; PLACE orders the files on
the page. Rules and thresholds stood in these files before any row they judge was read, but for
theory's and what docs/studies.md lists. Claims about Atari and DeepMind Lab are judged on bsuite's
environments where their question can be asked there, and say so; once more on MinAtar's games and
on levels with memory, by the same rules, written down before those were run. A claim of theory is
judged by its experiment's runs, the others by final scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from rbve import registry
from rbve.paper.judging.verdicts import Judgement

FOR_ATARI, FOR_LAB = "bsuite for Atari", "bsuite for DeepMind Lab"
# What bsuite cannot stand in for.
ATARI, LAB = "Atari's own scores", "the paper's own table for DeepMind Lab"
OWN_TABLES = "the paper's own tables"


class Second(NamedTuple):
    """A second kind of data that stands in for the paper's."""

    where: str
    about: str  # what it stands in for
    experiments: Mapping[str, str]  # by the experiment that asks the same first


class Again(NamedTuple):
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

    @property
    def again(self) -> Again | None:
        """Whose runs judge it a second time, by the same rule; None = nothing else stands in."""
        second = SECOND.get(self.here)
        return second and Again(second.where, second.experiments[self.experiment])


@cache
def all_claims() -> tuple[Claim, ...]:
    """Of every file of this folder, by PLACE and then by name."""
    files = registry.Registry("claims", __name__, __file__)
    modules = [files.load(name) for name in files.names()]
    modules.sort(key=lambda module: getattr(module, "PLACE", len(modules)))
    return tuple(claim for module in modules for claim in module.CLAIMS)
