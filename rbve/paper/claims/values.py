"""What the networks' values claim; what hangs on the ranking term; what the data does."""

from functools import partial
from typing import Any

from rbve.paper.claims import FOR_ATARI, FOR_LAB, Claim
from rbve.paper.claims import _words as words
from rbve.paper.claims._words import CLOSE, OVERESTIMATION, PLENTY, SCARCE, called, quiet, side
from rbve.paper.judging import _rules as rules
from rbve.paper.judging._effects import METHODS, Pick, Quantity
from rbve.paper.judging._rules import alike, better, between, rising, similar, worst

PLACE = 2
_APPENDIX = "appendix 'Over-estimation on Online Policy Selection Games'"
_FIGURE = "figure 'Over-estimation of Q-values'"
_SECTION = "section 'Over-estimation Experiments'"
_STRENGTH = "appendix 'On the Effects of Regularization'"
_RANKING = "section 'Ranking regularization'"
_COVERAGE = "section 'The importance of coverage'"
_CORRECTED = "signed until the first rows were read"
_NOISY, _NOISELESS = words.expert(0.25), words.expert(0.0)
_RIVALS = ("DDQN", "R-DQN")
_BASE = {"filter": "exponential", "normalise": "dataset", "form": "hinge2", "bounded": False}
_BASE |= {"lam": 0.005, "nu": 0.05, "beta": 0.5}

_bsuite = partial(Claim, here=FOR_ATARI)
_fractions = partial(Claim, here=FOR_ATARI, experiment="fractions")
_strength = partial(Claim, here=FOR_ATARI, experiment="ranking_strength")
_filters = partial(Claim, experiment="filters")
_rewards = partial(Claim, here=FOR_ATARI, experiment="reward_distribution")
_coverage = partial(Claim, here=FOR_LAB, experiment="coverage")


def _ranking_lowers(quantity: Quantity) -> rules.Rule:
    pairs = (("R-DQN", "DDQN"), ("R-BVE", "BVE"))
    return worst(*(better(own, [other], quiet, quantity, -1) for own, other in pairs))


def _rbve(**changed: Any) -> Pick:
    return Pick("rbve", {**_BASE, **changed})


_NO_WEIGHT = {"no weight": _rbve(filter="none")}
_LARGER = {f"λ {lam:g}": _rbve(lam=lam) for lam in (0.05, 0.5)}

CLAIMS = (
    _bsuite(
        "Over-estimation: DDQN > R-DQN > BVE > R-BVE",
        _APPENDIX,
        "ordered: log₁₀(1 + over-estimation error), 10% of the data, no noise",
        rules.ordered(["DDQN", "R-DQN", "BVE", "R-BVE"], quiet, OVERESTIMATION),
    ),
    _bsuite(
        "Ranking lowers over-estimation, of DDQN and of BVE",
        _APPENDIX,
        "better (lower): R-DQN − DDQN and R-BVE − BVE in log₁₀(1 + error), "
        "10% of the data, no noise; the weaker counts",
        _ranking_lowers(OVERESTIMATION),
        figure="overestimation-over-training",
    ),
    _bsuite(
        "Ranking lowers the value error, of DDQN and of BVE",
        _APPENDIX,
        "better (lower): R-DQN − DDQN and R-BVE − BVE in log₁₀(1 + |value error|), "
        f"10% of the data, no noise; the weaker counts; {_CORRECTED}",
        _ranking_lowers(words.VALUE_ERROR),
    ),
    _bsuite(
        "DDQN has the highest value error",
        _APPENDIX,
        "better: DDQN − {R-DQN, BVE, R-BVE} in log₁₀(1 + |value error|), "
        f"10% of the data, no noise; {_CORRECTED}",
        better("DDQN", ["R-DQN", "BVE", "R-BVE"], quiet, words.VALUE_ERROR),
    ),
    _fractions(
        "DDQN's over-estimation grows severely as data becomes scarce",
        _FIGURE,
        "between: DDQN at 5% or less − at 50% or more, log₁₀(1 + over-estimation error)",
        between(["DDQN"], SCARCE, PLENTY, OVERESTIMATION),
    ),
    _fractions(
        "R-DQN over-estimates less than DDQN",
        _FIGURE,
        "better (lower): R-DQN − DDQN in log₁₀(1 + error), mean over all shares",
        better("R-DQN", ["DDQN"], words.ANY_SHARE, OVERESTIMATION, -1),
    ),
    _fractions(
        "R-DQN's over-estimation still grows by orders of magnitude as data becomes scarce",
        _SECTION,
        "between: R-DQN at 5% or less − at 50% or more, log₁₀(1 + over-estimation error), "
        "the mean at least 2",
        between(["R-DQN"], SCARCE, PLENTY, OVERESTIMATION, least=words.ORDERS),
    ),
    _fractions(
        "BVE and R-BVE reduce over-estimation in all settings",
        _SECTION,
        "better (lower) at every share of every game by itself: {BVE, R-BVE} − DDQN in "
        "log₁₀(1 + error); the weaker counts",
        worst(
            *(
                rules.better_everywhere(own, [f"DDQN ({own})"], words.ANY_SHARE, OVERESTIMATION, -1)
                for own in ("BVE", "R-BVE")
            )
        ),
        figure="overestimation",
    ),
    _fractions(
        "R-BVE reduces over-estimation by orders of magnitude",
        "section 'Introduction'",
        "better (lower): R-BVE − DDQN in log₁₀(1 + error), mean over all shares and at least 2",
        better("R-BVE", ["DDQN"], words.ANY_SHARE, OVERESTIMATION, -1, words.ORDERS),
    ),
    _strength(
        "A larger λ widens the action gap",
        _STRENGTH,
        "rising: action gap of R-BVE (the paper does not say whose) along λ = .005, .05, .5, 5; "
        "R-DQN's is told beside it",
        rules.beside(
            rising(words.along("rbve"), quiet, words.ACTION_GAP),
            "R-DQN",
            rising(words.along("rdqn"), quiet, words.ACTION_GAP),
        ),
    ),
    _strength(
        "A larger λ lowers over-estimation",
        _STRENGTH,
        "falling: log₁₀(1 + over-estimation error) of R-DQN (the paper does not say whose) along "
        "λ = .005, .05, .5, 5; R-BVE's is told beside it",
        rules.beside(
            rising(words.along("rdqn"), quiet, OVERESTIMATION, -1),
            "R-BVE",
            rising(words.along("rbve"), quiet, OVERESTIMATION, -1),
        ),
    ),
    _filters(
        "The exponential weight works best of the filters tried",
        _RANKING,
        "better: R-BVE with the exponential weight − with the binary, the advantage filter; "
        "no noise, V̂ standardised",
        better(_rbve(), {name: _rbve(filter=name) for name in ("binary", "advantage")}, quiet),
    ),
    _filters(
        "Without a weight the ranking term does harm, since behaviour is not optimal",
        _RANKING,
        "better: R-BVE with the exponential weight − with none; no noise",
        better(_rbve(), _NO_WEIGHT, quiet),
    ),
    _filters(
        "Without a weight the ranking term can make values over-estimate",
        "appendix 'Pairwise Ranking Loss for Q-learning'",
        "better (lower): log₁₀(1 + over-estimation error) of R-BVE with the exponential weight − "
        f"with none; no noise; {words.LATER}",
        better(_rbve(), _NO_WEIGHT, quiet, OVERESTIMATION, -1),
    ),
    _strength(
        "Ranking is robust to its strength λ",
        "section 'Experiments'",
        "similar: R-BVE at λ = .05, .5 − at .005 within ±10 points, no noise",
        similar(_rbve(), _LARGER, quiet, CLOSE),
        figure="normalised-return",
    ),
    _strength(
        "λ = .005 is the best choice on most tasks",
        "appendix 'Atari Hyperparameters'",
        "better: R-BVE at λ = .005 − at .05, .5, no noise",
        better(_rbve(), _LARGER, quiet),
    ),
    Claim(
        "Ranking is robust to its margin ν",
        "section 'Experiments'",
        "similar: R-BVE at ν = .5 − at .05 within ±10 points, no noise",
        similar(_rbve(), {"ν 0.5": _rbve(nu=0.5)}, quiet, CLOSE),
        experiment="ranking_forms",
    ),
    _fractions(
        "With little data BVE and R-BVE score above DQN and R-DQN",
        "figure 'Sample Efficiency'",
        "better: {BVE, R-BVE} − {DDQN, R-DQN} at 5% or less; the weaker of the two counts",
        worst(better("BVE", _RIVALS, SCARCE), better("R-BVE", called("R-BVE", *_RIVALS), SCARCE)),
        figure="normalised-return",
    ),
    _fractions(
        "R-BVE is particularly effective where data is scarce",
        "section 'Discussion'",
        "widens: its lead over DDQN at 5% or less − at 50% or more, above 0",
        rules.widens("R-BVE", ["DDQN"], SCARCE, PLENTY),
    ),
    _rewards(
        "BVE beats DQN on episodes below the mean return, and on those above",
        "appendix 'Atari: Robustness to Data'",
        "better: BVE − DDQN on each side, 10% of the episodes; the weaker of the two counts",
        worst(*(better("BVE", [f"DDQN, {s}"], side(s)) for s in ("below", "above"))),
    ),
    _rewards(
        "BVE is more robust than DDQN to variations of the reward distribution",
        "section 'Robustness Experiments'",
        "steadier: |score on episodes below the mean − above it| of BVE below that of DDQN",
        rules.steadier("BVE", ["DDQN"], side("below"), side("above")),
        figure="normalised-return",
    ),
    _coverage(
        "On a noiseless expert's data BC outperforms all offline RL",
        _COVERAGE,
        "better: BC − {DDQN, R-DQN, CQL, BVE, R-BVE}, expert ε 0, 10% of the episodes",
        better("BC", [*_RIVALS, "CQL", "BVE", "R-BVE"], _NOISELESS),
        printed="seekavoid ε 0: BC 28.0, R2D2 4.7, CQL 12.8, BVE 4.4, R-BVE 17.1",
    ),
    _coverage(
        "On a noisy expert's data R-BVE outperforms BC",
        _COVERAGE,
        "better: R-BVE − BC, expert ε .25, 10% of the episodes",
        better("R-BVE", ["BC"], _NOISY),
        printed="seekavoid ε .25: R-BVE 25.6 ± 7.0, BC 17.5 ± 7.5",
        figure="normalised-return",
    ),
    _coverage(
        "Noise in the expert's actions makes BC worse",
        "figure 'Effect of coverage'",
        "between: BC at expert ε .25 − at ε 0, below 0",
        between(["BC"], _NOISY, _NOISELESS, sign=-1),
        printed="seekavoid: BC 28.0 ± 7.6 at ε 0, 17.5 ± 7.5 at ε .25",
    ),
    _coverage(
        "Noise in the expert's actions helps DDQN (with memory R2D2), BVE and R-BVE",
        _COVERAGE,
        "between: {DDQN, BVE, R-BVE} at expert ε .25 − at ε 0, above 0",
        between(["DDQN", "BVE", "R-BVE"], _NOISY, _NOISELESS),
        printed="seekavoid, ε 0 to .25: R2D2 4.7 to 13.5, BVE 4.4 to 9.0, R-BVE 17.1 to 25.6",
    ),
    _coverage(
        "Noise in the expert's actions leaves CQL unaffected",
        _COVERAGE,
        "similar: CQL at expert ε .25 − at ε 0 within ±10 points",
        alike(["CQL"], _NOISY, _NOISELESS, CLOSE),
        printed="seekavoid: 12.8 ± 10.7 at ε 0, 13.5 ± 5.1 at ε .25",
    ),
    _coverage(
        "Noise in the expert's actions leaves R-DQN (with memory R-R2D2) unaffected",
        _COVERAGE,
        "similar: R-DQN at expert ε .25 − at ε 0 within ±10 points",
        alike(["R-DQN"], _NOISY, _NOISELESS, CLOSE),
    ),
    _coverage(
        "R-BVE from a noisy expert matches BC from a noiseless one",
        "figure 'Effect of coverage'",
        "similar: R-BVE at expert ε .25 − BC at ε 0 within ±10 points",
        alike({"R-BVE − BC": METHODS["R-BVE"]}, _NOISY, _NOISELESS, CLOSE, "BC"),
        printed="seekavoid: R-BVE 25.6 ± 7.0, BC 28.0 ± 7.6",
    ),
)
