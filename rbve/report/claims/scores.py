"""Which method scores best: the paper's bsuite figure, and its Atari ablations."""

from __future__ import annotations

from rbve.report.claims.claim import (
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
from rbve.report.effects import Pick
from rbve.report.rules import better, reaches, similar, steadier

OTHERS = {**BASELINES, "IQN": IQN}


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
        "better: REM − DDQN and CQL − DDQN, noise .25; the weaker of the two counts",
        lambda found: worst(
            better(found, REM, {"DDQN (REM)": DDQN}, on("cartpole", 0.25)),
            better(found, CQL, {"DDQN (CQL)": DDQN}, on("cartpole", 0.25)),
        ),
    ),
    Claim(
        "Methods that stay near the data (BCQ, CQL, R-BVE, R-DQN) excel on noisy catch",
        "figure 'Bsuite Experiments'",
        "reaches: normalised score of at least 90, noise .25",
        lambda found: reaches(
            found,
            {"BCQ": BCQ, "CQL": CQL, "R-BVE": RBVE, "R-DQN": RDQN},
            on("catch", 0.25),
            EXPERT,
        ),
    ),
    Claim(
        "On noisy mountain_car all methods almost reach the agent that made the data",
        "section 'bsuite Experiments'",
        "reaches: normalised score of at least 90, noise .25",
        lambda found: reaches(
            found, {**BASELINES, "R-BVE": RBVE, "R-DQN": RDQN}, on("mountain_car", 0.25), EXPERT
        ),
    ),
    Claim(
        "DDQN performs poorly on mountain_car without noise",
        "section 'bsuite Experiments'",
        "better: {CQL, R-BVE} − DDQN, no noise; the weaker of the two counts",
        lambda found: worst(
            better(found, CQL, {"DDQN (CQL)": DDQN}, on("mountain_car", 0.0)),
            better(found, RBVE, {"DDQN (R-BVE)": DDQN}, on("mountain_car", 0.0)),
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
        "better: R-BVE at λ = .005 − BVE, all six problems",
        lambda found: better(
            found, Pick("rbve", {**DEFAULT, "lam": 0.005}), {"BVE": BVE}, standard
        ),
    ),
    Claim(
        "R-BVE and R-DQN outperform the other offline methods",
        "figure 'Atari offline policy selection games results'",
        "better: {R-BVE, R-DQN} − {DDQN, CQL, REM, BCQ, IQN}, all six problems; the weaker counts",
        lambda found: worst(
            better(found, RBVE, OTHERS, standard),
            better(found, RDQN, renamed(OTHERS, "R-DQN"), standard),
        ),
        FOR_ATARI,
        printed="median of 37 games: R-BVE 109.1, R-DQN 108.2, IQN 104.8, REM 104.7, "
        "BCQ 102.6, CQL 98.9, DDQN 83.1, BC 50.8",
    ),
    Claim(
        "Ranking brings the largest improvement: R-DQN above DDQN, R-BVE above BVE",
        "figure 'Atari ablations'",
        "better: R-DQN − DDQN and R-BVE − BVE, all six problems; the weaker of the two counts",
        lambda found: worst(
            better(found, RDQN, {"DDQN": DDQN}, standard),
            better(found, RBVE, {"BVE": BVE}, standard),
        ),
        FOR_ATARI,
    ),
    Claim(
        "R-BVE, ranking and BVE together, performs best",
        "figure 'Atari ablations'",
        "better: R-BVE − {DDQN, BVE, R-DQN, MC}, all six problems",
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
        "Monte Carlo returns perform poorly beside BVE",
        "figure 'Atari ablations'",
        "better: BVE − MC, all six problems",
        lambda found: better(found, BVE, {"MC": MC}, standard),
        FOR_ATARI,
    ),
    Claim(
        "BC on the whole of the data works very poorly",
        "section 'Ablation Experiments on Atari'",
        "better: {BVE, filtered BC} − BC, all six problems; the weaker of the two counts",
        lambda found: worst(
            better(found, BVE, {"BC (BVE)": BC}, standard),
            better(found, FILTERED, {"BC (filtered BC)": BC}, standard),
        ),
        FOR_ATARI,
        printed="median of 37 games: BC 50.8, DDQN 83.1",
    ),
    Claim(
        "Filtered BC works considerably better than BC",
        "section 'Ablation Experiments on Atari'",
        "better: filtered BC − BC, all six problems",
        lambda found: better(found, FILTERED, {"BC": BC}, standard),
        FOR_ATARI,
    ),
    Claim(
        "Filtered BC performs considerably worse than BVE",
        "section 'Ablation Experiments on Atari'",
        "better: BVE − filtered BC, all six problems",
        lambda found: better(found, BVE, {"filtered BC": FILTERED}, standard),
        FOR_ATARI,
    ),
)
