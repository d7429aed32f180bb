"""What the networks claim: over-estimation, value error, action gap."""

from __future__ import annotations

from functools import partial

from rbve.paper.claims import FOR_ATARI, Claim
from rbve.paper.claims._words import (
    ACTION_GAP,
    ANY_SHARE,
    ORDERS,
    OVERESTIMATION,
    PLENTY,
    SCARCE,
    VALUE_ERROR,
    along,
    quiet,
)
from rbve.paper.judging import rules
from rbve.paper.judging.effects import Quantity
from rbve.paper.judging.rules import better, between, rising, worst

PLACE = 2
APPENDIX = "appendix 'Over-estimation on Online Policy Selection Games'"
FIGURE = "figure 'Over-estimation of Q-values'"
SECTION = "section 'Over-estimation Experiments'"
STRENGTH = "appendix 'On the Effects of Regularization'"
CORRECTED = "signed until the first rows were read"

_bsuite = partial(Claim, here=FOR_ATARI)
_fractions = partial(Claim, here=FOR_ATARI, experiment="fractions")
_strength = partial(Claim, here=FOR_ATARI, experiment="ranking_strength")


def _ranking_lowers(quantity: Quantity) -> rules.Rule:
    pairs = (("R-DQN", "DDQN"), ("R-BVE", "BVE"))
    return worst(*(better(own, [other], quiet, quantity, -1) for own, other in pairs))


CLAIMS = (
    _bsuite(
        "Over-estimation: DDQN > R-DQN > BVE > R-BVE",
        APPENDIX,
        "ordered: log₁₀(1 + over-estimation error), 10% of the data, no noise",
        rules.ordered(["DDQN", "R-DQN", "BVE", "R-BVE"], quiet, OVERESTIMATION),
    ),
    _bsuite(
        "Ranking lowers over-estimation, of DDQN and of BVE",
        APPENDIX,
        "better (lower): R-DQN − DDQN and R-BVE − BVE in log₁₀(1 + error), "
        "10% of the data, no noise; the weaker counts",
        _ranking_lowers(OVERESTIMATION),
    ),
    _bsuite(
        "Ranking lowers the value error, of DDQN and of BVE",
        APPENDIX,
        "better (lower): R-DQN − DDQN and R-BVE − BVE in log₁₀(1 + |value error|), "
        f"10% of the data, no noise; the weaker counts; {CORRECTED}",
        _ranking_lowers(VALUE_ERROR),
    ),
    _bsuite(
        "DDQN has the highest value error",
        APPENDIX,
        "better: DDQN − {R-DQN, BVE, R-BVE} in log₁₀(1 + |value error|), "
        f"10% of the data, no noise; {CORRECTED}",
        better("DDQN", ["R-DQN", "BVE", "R-BVE"], quiet, VALUE_ERROR),
    ),
    _fractions(
        "DDQN's over-estimation grows severely as data becomes scarce",
        FIGURE,
        "between: DDQN at 5% or less − at 50% or more, log₁₀(1 + over-estimation error)",
        between(["DDQN"], SCARCE, PLENTY, OVERESTIMATION),
    ),
    _fractions(
        "R-DQN over-estimates less than DDQN",
        FIGURE,
        "better (lower): R-DQN − DDQN in log₁₀(1 + error), mean over all shares",
        better("R-DQN", ["DDQN"], ANY_SHARE, OVERESTIMATION, -1),
    ),
    _fractions(
        "R-DQN's over-estimation still grows by orders of magnitude as data becomes scarce",
        SECTION,
        "between: R-DQN at 5% or less − at 50% or more, log₁₀(1 + over-estimation error), "
        "the mean at least 2",
        between(["R-DQN"], SCARCE, PLENTY, OVERESTIMATION, least=ORDERS),
    ),
    _fractions(
        "BVE and R-BVE reduce over-estimation in all settings",
        SECTION,
        "better (lower) at every share of every game by itself: {BVE, R-BVE} − DDQN in "
        "log₁₀(1 + error); the weaker counts",
        worst(
            *(
                rules.better_everywhere(own, [f"DDQN ({own})"], ANY_SHARE, OVERESTIMATION, -1)
                for own in ("BVE", "R-BVE")
            )
        ),
    ),
    _fractions(
        "R-BVE reduces over-estimation by orders of magnitude",
        "section 'Introduction'",
        "better (lower): R-BVE − DDQN in log₁₀(1 + error), mean over all shares and at least 2",
        better("R-BVE", ["DDQN"], ANY_SHARE, OVERESTIMATION, -1, ORDERS),
    ),
    _strength(
        "A larger λ widens the action gap",
        STRENGTH,
        "rising: action gap of R-BVE (the paper does not say whose) along λ = .005, .05, .5, 5; "
        "R-DQN's is told beside it",
        rules.beside(
            rising(along("rbve"), quiet, ACTION_GAP),
            "R-DQN",
            rising(along("rdqn"), quiet, ACTION_GAP),
        ),
    ),
    _strength(
        "A larger λ lowers over-estimation",
        STRENGTH,
        "falling: log₁₀(1 + over-estimation error) of R-DQN (the paper does not say whose) along "
        "λ = .005, .05, .5, 5; R-BVE's is told beside it",
        rules.beside(
            rising(along("rdqn"), quiet, OVERESTIMATION, -1),
            "R-BVE",
            rising(along("rbve"), quiet, OVERESTIMATION, -1),
        ),
    ),
)
