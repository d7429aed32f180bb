"""Statements that the paper's own tables speak about, and those only its own data could test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rbve.paper import printed as paper
from rbve.paper.claims.claim import ATARI, BASELINES, BC, IQN, RBVE, RDQN, Claim, standard
from rbve.paper.claims.rules import better
from rbve.paper.claims.verdicts import Judgement
from rbve.paper.finals import Final

HERE = "the paper's own tables"
NEEDS = "needs RL Unplugged's Atari data and accelerators"
RECORDED = {"cartpole": 1000, "catch": 2000, "mountain_car": 500}  # episodes, as its text says


class Size(NamedTuple):
    datasets: int
    steps: float  # in all, millions


# Table 'DeepMind Lab dataset details'.
SEEKAVOID = Size(5, 200.1)
LAB = {
    "explore_object_rewards_few": Size(3, 240.7),
    "explore_object_rewards_many": Size(3, 601.4),
    "rooms_select_nonmatching_object": Size(3, 360.2),
    "rooms_watermaze": Size(3, 363.3),
}


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


def run_length(_: Sequence[Any]) -> Judgement:
    own = SEEKAVOID.steps / SEEKAVOID.datasets
    return Judgement(
        "not here",
        f"contradicted by its own table: {SEEKAVOID.steps:g} million steps in {SEEKAVOID.datasets} "
        f"runs make {own:.3g} million each; RL Unplugged released 3 of the runs",
    )


def transitions(_: Sequence[Any]) -> Judgement:
    words = ", ".join(f"{level} {size.steps:g} in {size.datasets}" for level, size in LAB.items())
    return Judgement(
        "not here", f"contradicted by its own table: millions of steps in so many datasets: {words}"
    )


def first_update(_: Sequence[Any]) -> Judgement:
    length = next(row.length for row in paper.BSUITE_DATA if row.env == "catch")
    steps = RECORDED["catch"] * length
    return Judgement(
        "not here",
        f"contradicted by its own numbers: catch has {RECORDED['catch']} episodes of {length} "
        f"steps, {steps:,} in all, and its agent would never learn",
    )


def significantly(_: Sequence[Any]) -> Judgement:
    first, second = sorted(paper.ATARI_MEDIANS.items(), key=lambda each: -each[1])[:2]
    return Judgement(
        "not run",
        f"its own table: {first[0]} {first[1]:g}, {second[0]} {second[1]:g}, without errors or "
        f"seeds, so it cannot tell; {NEEDS}",
    )


def against(words: str) -> Callable[[Sequence[Any]], Judgement]:
    return lambda _: Judgement("not here", f"contradicted by its own text: {words}")


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
        f"{NEEDS}; on MinAtar better: R-BVE − {{BC, DDQN, CQL, REM, BCQ, IQN, R-DQN}}, IQN of "
        "N = N' = 8",
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
        "Online DQN on bsuite learns once 20,000 steps are recorded",
        "appendix 'bsuite Hyperparameters'",
        "against the episodes its text says were recorded, and their length in its table",
        first_update,
        HERE,
        experiment="",
        printed="min replay size 20,000",
    ),
    Claim(
        "Training runs on seekavoid_arena_01 took 50 million steps",
        "appendix 'DeepMind Lab Dataset'",
        "against its table: steps by datasets, one for each run",
        run_length,
        HERE,
        experiment="",
        printed="50 million; 5 datasets, 200.1 million steps",
    ),
    Claim(
        "300 million transitions of an online R2D2 were used on DeepMind Lab",
        "section 'DeepMind Lab Experiments'",
        "against its table of datasets",
        transitions,
        HERE,
        experiment="",
        printed="300 million",
    ),
    Claim(
        "R-BVE outperforms the others significantly over 37 Atari games",
        "appendix 'Atari Offline Policy Selection Results'",
        "its table's first against its second",
        significantly,
        HERE,
        experiment="",
        printed=", ".join(f"{name} {value:g}" for name, value in paper.ATARI_MEDIANS.items()),
    ),
    Claim(
        "The best margin ν varies somewhat between DeepMind Lab's levels",
        "section 'Experiments'",
        "needs RL Unplugged's DeepMind Lab data",
        lambda _: Judgement("not run", "needs RL Unplugged's DeepMind Lab data"),
        HERE,
        experiment="",
    ),
    Claim(
        "Atari's settings were tuned on the offline policy selection games alone",
        "figure 'Atari offline policy selection games results', caption",
        "against its text",
        against(
            "section 'Atari Experiments' had no search on those games, and the appendix tuned on "
            "the online policy selection games alone"
        ),
        HERE,
        experiment="",
    ),
    Claim(
        "CQL has a fixed α in all experiments",
        "section 'Experiments'",
        "against its text",
        against("appendix 'DeepMind Lab Hyperparameters' tuned α there"),
        HERE,
        experiment="",
    ),
)
