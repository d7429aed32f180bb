"""What the networks claim: over-estimation, value error, action gap."""

from __future__ import annotations

import numpy as np

from rbve.paper.claims.claim import (
    BVE,
    DDQN,
    FOR_ATARI,
    FOUR,
    HIGH,
    LOW,
    ORDERS,
    RBVE,
    RDQN,
    Claim,
    along,
    beside,
    quiet,
    share,
    worst,
)
from rbve.paper.claims.rules import better, better_everywhere, between, ordered, rising
from rbve.report.statistics import Floats, logarithm

CORRECTED = "signed until the first rows were read"


def magnitude(error: Floats) -> Floats:
    """Values below the truth are as wrong as those above it."""
    return np.abs(logarithm(error))


CLAIMS = (
    Claim(
        "Over-estimation: DDQN > R-DQN > BVE > R-BVE",
        "appendix 'Over-estimation on Online Policy Selection Games'",
        "ordered: log₁₀(1 + over-estimation error), 10% of the data, no noise",
        lambda found: ordered(found, FOUR, quiet, "overestimation", logarithm),
        FOR_ATARI,
    ),
    Claim(
        "Ranking lowers over-estimation, of DDQN and of BVE",
        "appendix 'Over-estimation on Online Policy Selection Games'",
        "better (lower): R-DQN − DDQN and R-BVE − BVE in log₁₀(1 + error), "
        "10% of the data, no noise; the weaker counts",
        lambda found: worst(
            better(found, RDQN, {"DDQN": DDQN}, quiet, "overestimation", -1, logarithm),
            better(found, RBVE, {"BVE": BVE}, quiet, "overestimation", -1, logarithm),
        ),
        FOR_ATARI,
    ),
    Claim(
        "Ranking lowers the value error, of DDQN and of BVE",
        "appendix 'Over-estimation on Online Policy Selection Games'",
        "better (lower): R-DQN − DDQN and R-BVE − BVE in log₁₀(1 + |value error|), "
        f"10% of the data, no noise; the weaker counts; {CORRECTED}",
        lambda found: worst(
            better(found, RDQN, {"DDQN": DDQN}, quiet, "value_error", -1, magnitude),
            better(found, RBVE, {"BVE": BVE}, quiet, "value_error", -1, magnitude),
        ),
        FOR_ATARI,
    ),
    Claim(
        "DDQN has the highest value error",
        "appendix 'Over-estimation on Online Policy Selection Games'",
        "better: DDQN − {R-DQN, BVE, R-BVE} in log₁₀(1 + |value error|), "
        f"10% of the data, no noise; {CORRECTED}",
        lambda found: better(
            found,
            DDQN,
            {"R-DQN": RDQN, "BVE": BVE, "R-BVE": RBVE},
            quiet,
            "value_error",
            1,
            magnitude,
        ),
        FOR_ATARI,
    ),
    Claim(
        "DDQN's over-estimation grows severely as data becomes scarce",
        "figure 'Over-estimation of Q-values'",
        "between: DDQN at 5% or less − at 50% or more, log₁₀(1 + over-estimation error)",
        lambda found: between(
            found, {"DDQN": DDQN}, share(0, LOW), share(HIGH, 1), "overestimation", 1, logarithm
        ),
        FOR_ATARI,
        experiment="fractions",
    ),
    Claim(
        "R-DQN over-estimates less than DDQN",
        "figure 'Over-estimation of Q-values'",
        "better (lower): R-DQN − DDQN in log₁₀(1 + error), mean over all shares",
        lambda found: better(
            found, RDQN, {"DDQN": DDQN}, share(0, 1), "overestimation", -1, logarithm
        ),
        FOR_ATARI,
        experiment="fractions",
    ),
    Claim(
        "R-DQN's over-estimation still grows by orders of magnitude as data becomes scarce",
        "section 'Over-estimation Experiments'",
        "between: R-DQN at 5% or less − at 50% or more, log₁₀(1 + over-estimation error), "
        "the mean at least 2",
        lambda found: between(
            found,
            {"R-DQN": RDQN},
            share(0, LOW),
            share(HIGH, 1),
            "overestimation",
            1,
            logarithm,
            ORDERS,
        ),
        FOR_ATARI,
        experiment="fractions",
    ),
    Claim(
        "BVE and R-BVE reduce over-estimation in all settings",
        "section 'Over-estimation Experiments'",
        "better (lower) at every share of every game by itself: {BVE, R-BVE} − DDQN in "
        "log₁₀(1 + error); the weaker counts",
        lambda found: worst(
            *(
                better_everywhere(
                    found,
                    own,
                    {f"DDQN ({who})": DDQN},
                    share(0, 1),
                    "overestimation",
                    -1,
                    logarithm,
                )
                for who, own in (("BVE", BVE), ("R-BVE", RBVE))
            )
        ),
        FOR_ATARI,
        experiment="fractions",
    ),
    Claim(
        "R-BVE reduces over-estimation by orders of magnitude",
        "section 'Introduction'",
        "better (lower): R-BVE − DDQN in log₁₀(1 + error), mean over all shares and at least 2",
        lambda found: better(
            found,
            RBVE,
            {"DDQN": DDQN},
            share(0, 1),
            "overestimation",
            -1,
            logarithm,
            ORDERS,
        ),
        FOR_ATARI,
        experiment="fractions",
    ),
    Claim(
        "A larger λ widens the action gap",
        "appendix 'On the Effects of Regularization'",
        "rising: action gap of R-BVE (the paper does not say whose) along λ = .005, .05, .5, 5; "
        "R-DQN's is told beside it",
        lambda found: beside(
            rising(found, along("rbve"), quiet, "action_gap"),
            "R-DQN",
            rising(found, along("rdqn"), quiet, "action_gap"),
        ),
        FOR_ATARI,
        experiment="ranking_strength",
    ),
    Claim(
        "A larger λ lowers over-estimation",
        "appendix 'On the Effects of Regularization'",
        "falling: log₁₀(1 + over-estimation error) of R-DQN (the paper does not say whose) along "
        "λ = .005, .05, .5, 5; R-BVE's is told beside it",
        lambda found: beside(
            rising(found, along("rdqn"), quiet, "overestimation", -1, logarithm),
            "R-BVE",
            rising(found, along("rbve"), quiet, "overestimation", -1, logarithm),
        ),
        FOR_ATARI,
        experiment="ranking_strength",
    ),
)
