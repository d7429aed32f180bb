"""What a claim is, and the words its rules are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rbve.paper.claims.verdicts import Judgement
from rbve.paper.effects import Pick
from rbve.paper.finals import Problem

DEFAULT = {"normalise": "dataset"}
RBVE, RDQN = Pick("rbve", DEFAULT), Pick("rdqn", DEFAULT)
DDQN, BVE, MC, BC = Pick("dqn"), Pick("bve"), Pick("mc"), Pick("bc")
CQL, REM, BCQ, IQN = Pick("cql"), Pick("rem"), Pick("bcq"), Pick("iqn")
FILTERED = Pick("filtered_bc")
BASELINES = {"DDQN": DDQN, "CQL": CQL, "REM": REM, "BCQ": BCQ}
FOUR = {"DDQN": DDQN, "R-DQN": RDQN, "BVE": BVE, "R-BVE": RBVE}
LAMBDAS = (0.005, 0.05, 0.5, 5.0)
LOW, HIGH = 0.05, 0.5  # 'low data' is this share of the episodes or less, 'high' this or more
EXPERT = 90.0  # normalised score that 'almost reaches' the online agent's best
CLOSE = 10.0  # points of normalised score that still count as 'similar'
ORDERS = 2.0  # log₁₀: 'orders of magnitude' is a factor of 100 or more
LATER = "a row added after the first rows were read"
ALL_SIX = "all six problems (10% of the episodes)"

FOR_ATARI, FOR_LAB = "bsuite for Atari", "bsuite for DeepMind Lab"
# What bsuite cannot stand in for.
ATARI, LAB = "Atari's own scores", "the paper's own table for DeepMind Lab"


class Second(NamedTuple):
    """A second kind of data that stands in for the paper's."""

    where: str
    about: str  # what it stands in for
    experiments: Mapping[str, str]  # by the experiment that asks the same first


class Again(NamedTuple):
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


def standard(problem: Problem) -> bool:
    """What an agent lived through while it learned; how much of it is the experiment's matter."""
    return problem.epsilon is None and plain(problem)


def plain(problem: Problem) -> bool:
    return problem.side == "all" and problem.action == "chosen"


def on(env: str, noise: float | None = None) -> Callable[[Problem], bool]:
    return lambda p: standard(p) and p.env == env and (noise is None or p.noise == noise)


def quiet(problem: Problem) -> bool:
    return standard(problem) and problem.noise == 0


def noisy(problem: Problem) -> bool:
    return standard(problem) and problem.noise == 0.25


def share(low: float, high: float) -> Callable[[Problem], bool]:
    return lambda p: quiet(p) and low <= p.keep <= high


def side(name: str) -> Callable[[Problem], bool]:
    return lambda p: p.side == name and p.epsilon is None


def expert(epsilon: float) -> Callable[[Problem], bool]:
    return lambda p: p.epsilon == epsilon and not p.script and plain(p)


def along(algorithm: str) -> list[tuple[str, Pick]]:
    return [(f"λ {lam:g}", Pick(algorithm, {**DEFAULT, "lam": lam})) for lam in LAMBDAS]


ORDER = ("not run", "not here", "partly", "reproduced")


def beside(counts: Judgement, name: str, other: Judgement) -> Judgement:
    """The first judges; what the other measured is told as well."""
    if counts.verdict == "not run":
        return counts
    return replace(counts, measured=f"{counts.measured}; {name}: {other.measured}")


def worst(*parts: Judgement) -> Judgement:
    """A claim of several parts is as good as its weakest."""
    verdict = min((part.verdict for part in parts), key=ORDER.index)
    return Judgement(
        verdict,
        "; ".join(part.measured for part in parts),
        {name: effect for part in parts for name, effect in part.effects.items()},
    )
