"""Statements that the paper's own tables speak about, and those only its own data could test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rbve.report import paper
from rbve.report.claims.claim import ATARI, BASELINES, BC, IQN, RBVE, RDQN, Claim, standard
from rbve.report.finals import Final
from rbve.report.rules import Judgement, better

HERE = "the paper's own tables"
NEEDS = "needs RL Unplugged's Atari data and accelerators"
RECORDED = {"cartpole": 1000, "catch": 2000, "mountain_car": 500}  # episodes, as its text says


def agents(_: Sequence[Any]) -> Judgement:
    levels = len({row.noise for row in paper.BSUITE_DATA})
    return Judgement(
        "not here", f"contradicted by its own table: {levels} levels × 5 seeds make {5 * levels}"
    )


def subsampled(_: Sequence[Any]) -> Judgement:
    listed = {row.env: row.episodes for row in paper.BSUITE_DATA if row.noise == 0}
    words = [f"{env} {count} of {RECORDED[env]}" for env, count in sorted(listed.items())]
    whole = [env for env, count in listed.items() if count == RECORDED[env]]
    return Judgement(
        "partly", f"contradicted by its own table for {', '.join(whole)}: {', '.join(words)}"
    )


def released(_: Sequence[Any]) -> Judgement:
    return Judgement("not here", "contradicted by the release: 3 training runs are in RL Unplugged")


def best_on_atari(found: Sequence[Final]) -> Judgement:
    """Only games can tell."""
    if not found:
        return Judgement("not run", NEEDS)
    rivals = {"BC": BC, **BASELINES, "IQN": IQN, "R-DQN": RDQN}
    return better(found, RBVE, rivals, standard)


CLAIMS = (
    Claim(
        "R-BVE has the best median score over 37 Atari games (109.1)",
        "table 'Atari Offline Policy Selection Results'",
        f"{NEEDS}; on MinAtar better: R-BVE − {{BC, DDQN, CQL, REM, BCQ, IQN, R-DQN}}",
        best_on_atari,
        ATARI,
        experiment="",
        printed=", ".join(f"{name} {value:g}" for name, value in paper.ATARI_MEDIANS.items()),
    ),
    Claim(
        "25 agents were recorded per bsuite game",
        "appendix 'BSuite Dataset'",
        "levels of noise in its table × 5 seeds",
        agents,
        HERE,
        experiment="",
        printed="25",
    ),
    Claim(
        "10% of the recorded bsuite data is used",
        "appendix 'BSuite Dataset'",
        "episodes in its table against the episodes its text says were recorded",
        subsampled,
        HERE,
        experiment="",
        printed="cartpole 1000, catch 200, mountain_car 50 episodes",
    ),
    Claim(
        "5 datasets of seekavoid_arena_01 were recorded while training",
        "table 'DeepMind Lab dataset details'",
        "against what RL Unplugged released",
        released,
        HERE,
        experiment="",
        printed="5",
    ),
)
