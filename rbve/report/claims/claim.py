"""What a claim is, and the words its rules are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rbve.report.effects import Pick
from rbve.report.finals import Problem
from rbve.report.rules import Judgement

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

FOR_ATARI, FOR_LAB = "bsuite for Atari", "bsuite for DeepMind Lab"
ATARI = "Atari's own scores"  # bsuite cannot stand in for them

# Where MinAtar asks what bsuite's experiments ask in Atari's place.
MINATAR = {
    "": "minatar",
    "bsuite": "minatar",
    "fractions": "minatar_fractions",
    "reward_distribution": "minatar_rewards",
    "ranking_strength": "minatar_strength",
}


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
    def minatar(self) -> str:
        """Whose runs judge it a second time, by the same rule; "" = it is not about Atari."""
        return MINATAR[self.experiment] if self.here in (FOR_ATARI, ATARI) else ""


def standard(problem: Problem) -> bool:
    """The paper's bsuite setting."""
    return problem.epsilon is None and problem.keep == 0.1 and plain(problem)


def plain(problem: Problem) -> bool:
    return problem.side == "all" and problem.action == "chosen"


def on(env: str, noise: float | None = None) -> Callable[[Problem], bool]:
    return lambda p: standard(p) and p.env == env and (noise is None or p.noise == noise)


def quiet(problem: Problem) -> bool:
    return standard(problem) and problem.noise == 0


def noisy(problem: Problem) -> bool:
    return standard(problem) and problem.noise == 0.25


def share(low: float, high: float) -> Callable[[Problem], bool]:
    return lambda p: plain(p) and p.epsilon is None and p.noise == 0 and low <= p.keep <= high


def side(name: str) -> Callable[[Problem], bool]:
    return lambda p: p.side == name and p.epsilon is None


def expert(epsilon: float) -> Callable[[Problem], bool]:
    return lambda p: p.epsilon == epsilon and not p.script and plain(p)


def along(algorithm: str) -> list[tuple[str, Pick]]:
    return [(f"λ {lam:g}", Pick(algorithm, {**DEFAULT, "lam": lam})) for lam in LAMBDAS]


ORDER = ("not run", "not here", "partly", "reproduced")


def worst(*parts: Judgement) -> Judgement:
    """A claim of several parts is as good as its weakest."""
    verdict = min((part.verdict for part in parts), key=ORDER.index)
    return Judgement(
        verdict,
        "; ".join(part.measured for part in parts),
        {name: effect for part in parts for name, effect in part.effects.items()},
    )
