"""What the data does: how much there is, how good it is, how much it covers."""

from __future__ import annotations

from rbve.paper.claims.claim import (
    BC,
    BVE,
    CLOSE,
    CQL,
    DDQN,
    FOR_ATARI,
    FOR_LAB,
    HIGH,
    LOW,
    RBVE,
    RDQN,
    Claim,
    expert,
    share,
    side,
    worst,
)
from rbve.paper.claims.rules import alike, better, between, steadier, widens

CLAIMS = (
    Claim(
        "With little data BVE and R-BVE score above DQN and R-DQN",
        "figure 'Sample Efficiency'",
        "better: {BVE, R-BVE} − {DDQN, R-DQN} at 5% or less; the weaker of the two counts",
        lambda found: worst(
            better(found, BVE, {"DDQN": DDQN, "R-DQN": RDQN}, share(0, LOW)),
            better(found, RBVE, {"DDQN (R-BVE)": DDQN, "R-DQN (R-BVE)": RDQN}, share(0, LOW)),
        ),
        FOR_ATARI,
        experiment="fractions",
    ),
    Claim(
        "R-BVE is particularly effective where data is scarce",
        "section 'Discussion'",
        "widens: its lead over DDQN at 5% or less − at 50% or more, above 0",
        lambda found: widens(found, {"R-BVE": RBVE}, {"DDQN": DDQN}, share(0, LOW), share(HIGH, 1)),
        FOR_ATARI,
        experiment="fractions",
    ),
    Claim(
        "BVE beats DQN on episodes below the mean return, and on those above",
        "appendix 'Atari: Robustness to Data'",
        "better: BVE − DDQN on each side, 10% of the episodes; the weaker of the two counts",
        lambda found: worst(
            better(found, BVE, {"DDQN, below": DDQN}, side("below")),
            better(found, BVE, {"DDQN, above": DDQN}, side("above")),
        ),
        FOR_ATARI,
        experiment="reward_distribution",
    ),
    Claim(
        "BVE is more robust than DDQN to variations of the reward distribution",
        "section 'Robustness Experiments'",
        "steadier: |score on episodes below the mean − above it| of BVE below that of DDQN",
        lambda found: steadier(found, {"BVE": BVE}, {"DDQN": DDQN}, side("below"), side("above")),
        FOR_ATARI,
        experiment="reward_distribution",
    ),
    Claim(
        "On a noiseless expert's data BC outperforms all offline RL",
        "section 'The importance of coverage'",
        "better: BC − {DDQN, R-DQN, CQL, BVE, R-BVE}, expert ε 0, 10% of the episodes",
        lambda found: better(
            found,
            BC,
            {"DDQN": DDQN, "R-DQN": RDQN, "CQL": CQL, "BVE": BVE, "R-BVE": RBVE},
            expert(0.0),
        ),
        FOR_LAB,
        experiment="coverage",
        printed="seekavoid ε 0: BC 28.0, R2D2 4.7, CQL 12.8, BVE 4.4, R-BVE 17.1",
    ),
    Claim(
        "On a noisy expert's data R-BVE outperforms BC",
        "section 'The importance of coverage'",
        "better: R-BVE − BC, expert ε .25, 10% of the episodes",
        lambda found: better(found, RBVE, {"BC": BC}, expert(0.25)),
        FOR_LAB,
        experiment="coverage",
        printed="seekavoid ε .25: R-BVE 25.6 ± 7.0, BC 17.5 ± 7.5",
    ),
    Claim(
        "Noise in the expert's actions makes BC worse",
        "figure 'Effect of coverage'",
        "between: BC at expert ε .25 − at ε 0, below 0",
        lambda found: between(
            found, {"BC": BC}, expert(0.25), expert(0.0), "normalised_return", -1
        ),
        FOR_LAB,
        experiment="coverage",
        printed="seekavoid: BC 28.0 ± 7.6 at ε 0, 17.5 ± 7.5 at ε .25",
    ),
    Claim(
        "Noise in the expert's actions helps DDQN (with memory R2D2), BVE and R-BVE",
        "section 'The importance of coverage'",
        "between: {DDQN, BVE, R-BVE} at expert ε .25 − at ε 0, above 0",
        lambda found: between(
            found,
            {"DDQN": DDQN, "BVE": BVE, "R-BVE": RBVE},
            expert(0.25),
            expert(0.0),
            "normalised_return",
        ),
        FOR_LAB,
        experiment="coverage",
        printed="seekavoid, ε 0 to .25: R2D2 4.7 to 13.5, BVE 4.4 to 9.0, R-BVE 17.1 to 25.6",
    ),
    Claim(
        "Noise in the expert's actions leaves CQL unaffected",
        "section 'The importance of coverage'",
        "similar: CQL at expert ε .25 − at ε 0 within ±10 points",
        lambda found: alike(found, {"CQL": CQL}, expert(0.25), expert(0.0), CLOSE),
        FOR_LAB,
        experiment="coverage",
        printed="seekavoid: 12.8 ± 10.7 at ε 0, 13.5 ± 5.1 at ε .25",
    ),
    Claim(
        "Noise in the expert's actions leaves R-DQN (with memory R-R2D2) unaffected",
        "section 'The importance of coverage'",
        "similar: R-DQN at expert ε .25 − at ε 0 within ±10 points",
        lambda found: alike(found, {"R-DQN": RDQN}, expert(0.25), expert(0.0), CLOSE),
        FOR_LAB,
        experiment="coverage",
    ),
    Claim(
        "R-BVE from a noisy expert matches BC from a noiseless one",
        "figure 'Effect of coverage'",
        "similar: R-BVE at expert ε .25 − BC at ε 0 within ±10 points",
        lambda found: alike(found, {"R-BVE − BC": RBVE}, expert(0.25), expert(0.0), CLOSE, BC),
        FOR_LAB,
        experiment="coverage",
        printed="seekavoid: R-BVE 25.6 ± 7.0, BC 28.0 ± 7.6",
    ),
)
