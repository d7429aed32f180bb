"""Statements that the paper's own tables speak about, and those only its own data could test."""

from functools import partial

from rbve.paper import printed as paper
from rbve.paper.claims import ATARI, OWN_TABLES, Claim
from rbve.paper.claims._words import BASELINES, standard
from rbve.paper.judging._rules import Rule, better
from rbve.paper.judging.verdicts import Judgement, Verdict, not_run

PLACE = 5
_NEEDS = "needs RL Unplugged's Atari data and accelerators"
_NEEDS_LAB = "needs RL Unplugged's DeepMind Lab data"
_RECORDED = {"cartpole": 1000, "catch": 2000, "mountain_car": 500}  # episodes, as its text says
_MEDIANS = ", ".join(f"{name} {value:g}" for name, value in paper.ATARI_MEDIANS.items())


# Table 'DeepMind Lab dataset details': millions of steps, in five and in three datasets each.
_SEEKAVOID = 200.1
_LAB = {
    "explore_object_rewards_few": 240.7,
    "explore_object_rewards_many": 601.4,
    "rooms_select_nonmatching_object": 360.2,
    "rooms_watermaze": 363.3,
}

_LEVELS = len({row.noise for row in paper.BSUITE_DATA})  # of noise
_LISTED = {row.env: row.episodes for row in paper.BSUITE_DATA if row.noise == 0}
_WHOLE = ", ".join(env for env, count in _LISTED.items() if count == _RECORDED[env])
_SHARES = ", ".join(f"{env} {count} of {_RECORDED[env]}" for env, count in sorted(_LISTED.items()))
_LENGTH = next(row.length for row in paper.BSUITE_DATA if row.env == "catch")
_FIRST, _SECOND = sorted(paper.ATARI_MEDIANS.items(), key=lambda each: -each[1])[:2]

_own = partial(Claim, here=OWN_TABLES, experiment="")


def settled(verdict: Verdict, measured: str) -> Rule:
    """Whatever runs say."""
    return lambda finals: Judgement(verdict, measured)


def contradicted(words: str, by: str = "table", verdict: Verdict = "not reproduced") -> Rule:
    return settled(verdict, f"contradicted by its own {by}{words}")


# Only games can tell.
_best_on_atari = better("R-BVE", ("BC", *BASELINES, "IQN", "R-DQN"), standard)

CLAIMS = (
    Claim(
        "R-BVE has the best median score over 37 Atari games (109.1)",
        "table 'Atari Offline Policy Selection Results'",
        f"{_NEEDS}; on MinAtar better: R-BVE − {{BC, DDQN, CQL, REM, BCQ, IQN, R-DQN}}, IQN of "
        "N = N' = 8",
        lambda finals: _best_on_atari(finals) if finals else not_run(_NEEDS),
        ATARI,
        experiment="",
        printed=_MEDIANS,
    ),
    _own(
        "25 agents were recorded per bsuite game",
        "appendix 'BSuite Dataset'",
        "levels of noise in its table × 5 seeds",
        contradicted(f": {_LEVELS} levels × 5 seeds make {5 * _LEVELS}"),
        printed="25",
    ),
    _own(
        "10% of the recorded bsuite data is used",
        "appendix 'BSuite Dataset'",
        "episodes in its table against the episodes its text says were recorded",
        contradicted(f" for {_WHOLE}: {_SHARES}", verdict="partly"),
        printed="cartpole 1000, catch 200, mountain_car 50 episodes",
    ),
    _own(
        "Online DQN on bsuite learns once 20,000 steps are recorded",
        "appendix 'bsuite Hyperparameters'",
        "against the episodes its text says were recorded, and their length in its table",
        contradicted(
            f": catch has {_RECORDED['catch']} episodes of {_LENGTH} steps, "
            f"{_RECORDED['catch'] * _LENGTH:,} in all, and its agent would never learn",
            "numbers",
        ),
        printed="min replay size 20,000",
    ),
    _own(
        "Training runs on seekavoid_arena_01 took 50 million steps",
        "appendix 'DeepMind Lab Dataset'",
        "against its table: steps by datasets, one for each run",
        contradicted(
            f": {_SEEKAVOID:g} million steps in 5 runs make {_SEEKAVOID / 5:.3g} million each; "
            "RL Unplugged released 3 of the runs"
        ),
        printed="50 million; 5 datasets, 200.1 million steps",
    ),
    _own(
        "300 million transitions of an online R2D2 were used on DeepMind Lab",
        "section 'DeepMind Lab Experiments'",
        "against its table of datasets",
        contradicted(
            ": millions of steps in so many datasets: "
            + ", ".join(f"{level} {steps:g} in 3" for level, steps in _LAB.items())
        ),
        printed="300 million",
    ),
    _own(
        "R-BVE outperforms the others significantly over 37 Atari games",
        "appendix 'Atari Offline Policy Selection Results'",
        "its table's first against its second",
        settled(
            "not run",
            f"its own table: {_FIRST[0]} {_FIRST[1]:g}, {_SECOND[0]} {_SECOND[1]:g}, without "
            f"errors or seeds, so it cannot tell; {_NEEDS}",
        ),
        printed=_MEDIANS,
    ),
    _own(
        "The best margin ν varies somewhat between DeepMind Lab's levels",
        "section 'Experiments'",
        _NEEDS_LAB,
        settled("not run", _NEEDS_LAB),
    ),
    _own(
        "Atari's settings were tuned on the offline policy selection games alone",
        "figure 'Atari offline policy selection games results', caption",
        "against its text",
        contradicted(
            ": section 'Atari Experiments' had no search on those games, and the appendix tuned on "
            "the online policy selection games alone",
            "text",
        ),
    ),
    _own(
        "CQL has a fixed α in all experiments",
        "section 'Experiments'",
        "against its text",
        contradicted(": appendix 'DeepMind Lab Hyperparameters' tuned α there", "text"),
    ),
)
