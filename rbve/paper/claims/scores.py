"""Which method scores best: the paper's bsuite figure, and its Atari ablations."""

from __future__ import annotations

from rbve.paper.claims.claim import (
    ALL_SIX,
    BASELINES,
    BC,
    BCQ,
    BVE,
    CLOSE,
    CQL,
    DDQN,
    DEFAULT,
    EXPERT,
    FILTERED,
    FOR_ATARI,
    IQN,
    LATER,
    MC,
    RBVE,
    RDQN,
    REM,
    Claim,
    noisy,
    on,
    quiet,
    share,
    standard,
    worst,
)
from rbve.paper.claims.rules import better, reaches, similar, steadier
from rbve.paper.effects import Pick
from rbve.paper.finals import GAIN

OTHERS = {"BC": BC, **BASELINES, "IQN": IQN}
NEAR_DATA = {"BCQ": BCQ, "CQL": CQL, "R-BVE": RBVE, "R-DQN": RDQN}


def renamed(others: dict[str, Pick], who: str) -> dict[str, Pick]:
    return {f"{name} ({who})": pick for name, pick in others.items()}


CLAIMS = (
    Claim(
        "R-BVE outperforms all baselines on cartpole",
        "figure 'Bsuite Experiments'",
        "better: R-BVE − {DDQN, CQL, REM, BCQ} in normalised score, both noise levels",
        lambda found: better(found, RBVE, BASELINES, on("cartpole")),
    ),
    Claim(
        "On noisy cartpole R-DQN too outperforms all other approaches",
        "section 'bsuite Experiments'",
        "better: R-DQN − {DDQN, CQL, REM, BCQ}, noise .25",
        lambda found: better(found, RDQN, BASELINES, on("cartpole", 0.25)),
    ),
    Claim(
        "REM and CQL also perform relatively well on noisy cartpole",
        "section 'bsuite Experiments'",
        "better: {REM, CQL} − {DDQN, BCQ}, noise .25; the weaker of the two counts",
        lambda found: worst(
            *(
                better(found, own, renamed({"DDQN": DDQN, "BCQ": BCQ}, who), on("cartpole", 0.25))
                for who, own in (("REM", REM), ("CQL", CQL))
            )
        ),
    ),
    Claim(
        "Methods that stay near the data (BCQ, CQL, R-BVE, R-DQN) excel on noisy catch",
        "figure 'Bsuite Experiments'",
        "reaches: normalised score above 90; better: each − DDQN; noise .25, the weaker counts",
        lambda found: worst(
            reaches(found, NEAR_DATA, on("catch", 0.25), EXPERT),
            *(
                better(found, own, renamed({"DDQN": DDQN}, who), on("catch", 0.25))
                for who, own in NEAR_DATA.items()
            ),
        ),
    ),
    Claim(
        "On noisy mountain_car all methods almost reach the agent that made the data",
        "section 'bsuite Experiments'",
        "reaches: normalised score above 90, noise .25",
        lambda found: reaches(
            found, {**BASELINES, "R-BVE": RBVE, "R-DQN": RDQN}, on("mountain_car", 0.25), EXPERT
        ),
    ),
    Claim(
        "DDQN performs poorly on mountain_car without noise",
        "section 'bsuite Experiments'",
        "better (lower): DDQN − {CQL, REM, BCQ, R-BVE, R-DQN}, no noise",
        lambda found: better(
            found, DDQN, {"REM": REM, **NEAR_DATA}, on("mountain_car", 0.0), sign=-1
        ),
    ),
    Claim(
        "R-BVE and R-DQN are less affected by noise than the baselines",
        "section 'bsuite Experiments'",
        "steadier: |score at noise .25 − at noise 0| of {R-BVE, R-DQN} below that of "
        "{DDQN, CQL, REM, BCQ}; the weaker counts",
        lambda found: worst(
            *(
                steadier(found, {name: ours}, BASELINES, noisy, quiet)
                for name, ours in (("R-BVE", RBVE), ("R-DQN", RDQN))
            )
        ),
    ),
    Claim(
        "λ = .005, tuned on Atari, serves bsuite unchanged",
        "section 'Experiments'",
        f"similar: R-BVE at λ = .005 − R-BVE with λ chosen, within ±10 points, {ALL_SIX}",
        lambda found: similar(
            found,
            Pick("rbve", {**DEFAULT, "lam": 0.005}),
            {"λ chosen of .005, .05, .5": RBVE},
            standard,
            CLOSE,
        ),
    ),
    Claim(
        "R-BVE outperforms the other offline methods on bsuite",
        "sections 'Introduction' and 'Discussion'",
        f"better: R-BVE − {{DDQN, CQL, REM, BCQ}}, {ALL_SIX}",
        lambda found: better(found, RBVE, BASELINES, standard),
    ),
    Claim(
        "Ranking, weighted by success, works better in practice than CQL's regularisation",
        "section 'Related work'",
        f"better: R-DQN − CQL, both on DDQN, {ALL_SIX}; {LATER}",
        lambda found: better(found, RDQN, {"CQL": CQL}, standard),
    ),
    Claim(
        "BVE and R-BVE improve on the behaviour that made the data",
        "section 'Ranking regularization'",
        "reaches: normalised score above that of the recorded episodes, no noise",
        lambda found: reaches(found, {"BVE": BVE, "R-BVE": RBVE}, quiet, 0.0, measure=GAIN),
    ),
    Claim(
        "R-BVE and R-DQN outperform the other offline methods",
        "figure 'Atari offline policy selection games results'",
        f"better: {{R-BVE, R-DQN}} − {{BC, DDQN, CQL, REM, BCQ, IQN}}, {ALL_SIX}; IQN of "
        "N = N' = 8 and one setting; the weaker counts",
        lambda found: worst(
            better(found, RBVE, OTHERS, standard),
            better(found, RDQN, renamed(OTHERS, "R-DQN"), standard),
        ),
        FOR_ATARI,
        printed="median of 37 games: R-BVE 109.1, R-DQN 108.2, IQN 104.8, REM 104.7, "
        "BCQ 102.6, CQL 98.9, DDQN 83.1, BC 50.8",
    ),
    Claim(
        "Ranking brings the largest improvement, more than BVE does without it",
        "figure 'Atari ablations'",
        f"better: R-DQN − {{DDQN, BVE}} and R-BVE − BVE, {ALL_SIX}; the weaker of the two counts",
        lambda found: worst(
            better(found, RDQN, {"DDQN": DDQN, "BVE (R-DQN)": BVE}, standard),
            better(found, RBVE, {"BVE": BVE}, standard),
        ),
        FOR_ATARI,
    ),
    Claim(
        "R-BVE, ranking and BVE together, performs best",
        "figure 'Atari ablations'",
        f"better: R-BVE − {{DDQN, BVE, R-DQN, MC}}, {ALL_SIX}",
        lambda found: better(
            found, RBVE, {"DDQN": DDQN, "BVE": BVE, "R-DQN": RDQN, "MC": MC}, standard
        ),
        FOR_ATARI,
    ),
    Claim(
        "BVE and DDQN attain similar returns on all of the data",
        "figure 'Atari ablations'",
        "similar: BVE − DDQN within ±10 points on 100% of the episodes",
        lambda found: similar(found, BVE, {"DDQN": DDQN}, share(1, 1), CLOSE),
        FOR_ATARI,
        experiment="fractions",
    ),
    Claim(
        "Monte Carlo returns perform poorly beside BVE and DDQN",
        "figure 'Atari ablations'",
        f"better (lower): MC − {{BVE, DDQN}}, {ALL_SIX}",
        lambda found: better(found, MC, {"BVE": BVE, "DDQN": DDQN}, standard, sign=-1),
        FOR_ATARI,
    ),
    Claim(
        "BC on all episodes, good and bad, works very poorly",
        "section 'Ablation Experiments on Atari'",
        f"better: {{BVE, filtered BC}} − BC, {ALL_SIX}; the weaker of the two counts",
        lambda found: worst(
            better(found, BVE, {"BC (BVE)": BC}, standard),
            better(found, FILTERED, {"BC (filtered BC)": BC}, standard),
        ),
        FOR_ATARI,
        printed="on other games, median of 37: BC 50.8, DDQN 83.1",
    ),
    Claim(
        "Filtered BC works considerably better than BC",
        "section 'Ablation Experiments on Atari'",
        f"better: filtered BC − BC, {ALL_SIX}",
        lambda found: better(found, FILTERED, {"BC": BC}, standard),
        FOR_ATARI,
    ),
    Claim(
        "Filtered BC performs considerably worse than BVE",
        "section 'Ablation Experiments on Atari'",
        f"better: BVE − filtered BC, {ALL_SIX}",
        lambda found: better(found, BVE, {"filtered BC": FILTERED}, standard),
        FOR_ATARI,
    ),
)
