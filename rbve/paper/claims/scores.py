"""Which method scores best: the paper's bsuite figure, and its Atari ablations."""

from functools import partial

from rbve.paper.claims import FOR_ATARI, Claim
from rbve.paper.claims import _words as words
from rbve.paper.claims._words import ALL_SIX, BASELINES, CLOSE, EXPERT, called, on, quiet, standard
from rbve.paper.finals import GAIN
from rbve.paper.judging._effects import METHODS, STANDARDISED, Pick
from rbve.paper.judging._rules import better, reaches, similar, steadier, worst

PLACE = 1
_OTHERS = ("BC", *BASELINES, "IQN")
_NEAR_DATA = ("BCQ", "CQL", "R-BVE", "R-DQN")
_NOISY_CARTPOLE, _NOISY_CATCH = on("cartpole", 0.25), on("catch", 0.25)
_FIGURE, _SECTION = "figure 'Bsuite Experiments'", "section 'bsuite Experiments'"
_ABLATIONS, _ON_ATARI = "figure 'Atari ablations'", "section 'Ablation Experiments on Atari'"

_atari = partial(Claim, here=FOR_ATARI)

CLAIMS = (
    Claim(
        "R-BVE outperforms all baselines on cartpole",
        _FIGURE,
        "better: R-BVE − {DDQN, CQL, REM, BCQ} in normalised score, both noise levels",
        better("R-BVE", BASELINES, on("cartpole")),
    ),
    Claim(
        "On noisy cartpole R-DQN too outperforms all other approaches",
        _SECTION,
        "better: R-DQN − {DDQN, CQL, REM, BCQ}, noise .25",
        better("R-DQN", BASELINES, _NOISY_CARTPOLE),
    ),
    Claim(
        "REM and CQL also perform relatively well on noisy cartpole",
        _SECTION,
        "better: {REM, CQL} − {DDQN, BCQ}, noise .25; the weaker of the two counts",
        worst(*(better(m, called(m, "DDQN", "BCQ"), _NOISY_CARTPOLE) for m in ("REM", "CQL"))),
    ),
    Claim(
        "Methods that stay near the data (BCQ, CQL, R-BVE, R-DQN) excel on noisy catch",
        _FIGURE,
        "reaches: normalised score above 90; better: each − DDQN; noise .25, the weaker counts",
        worst(
            reaches(_NEAR_DATA, _NOISY_CATCH, EXPERT),
            *(better(m, called(m, "DDQN"), _NOISY_CATCH) for m in _NEAR_DATA),
        ),
    ),
    Claim(
        "On noisy mountain_car all methods almost reach the agent that made the data",
        _SECTION,
        "reaches: normalised score above 90, noise .25",
        reaches([*BASELINES, "R-BVE", "R-DQN"], on("mountain_car", 0.25), EXPERT),
    ),
    Claim(
        "DDQN performs poorly on mountain_car without noise",
        _SECTION,
        "better (lower): DDQN − {CQL, REM, BCQ, R-BVE, R-DQN}, no noise",
        better("DDQN", ["REM", *_NEAR_DATA], on("mountain_car", 0.0), sign=-1),
    ),
    Claim(
        "R-BVE and R-DQN are less affected by noise than the baselines",
        _SECTION,
        "steadier: |score at noise .25 − at noise 0| of {R-BVE, R-DQN} below that of "
        "{DDQN, CQL, REM, BCQ}; the weaker counts",
        worst(*(steadier(m, BASELINES, words.noisy, quiet) for m in ("R-BVE", "R-DQN"))),
    ),
    Claim(
        "λ = .005, tuned on Atari, serves bsuite unchanged",
        "section 'Experiments'",
        f"similar: R-BVE at λ = .005 − R-BVE with λ chosen, within ±10 points, {ALL_SIX}",
        similar(
            Pick("rbve", {**STANDARDISED, "lam": 0.005}),
            {"λ chosen of .005, .05, .5": METHODS["R-BVE"]},
            standard,
            CLOSE,
        ),
    ),
    Claim(
        "R-BVE outperforms the other offline methods on bsuite",
        "sections 'Introduction' and 'Discussion'",
        f"better: R-BVE − {{DDQN, CQL, REM, BCQ}}, {ALL_SIX}",
        better("R-BVE", BASELINES, standard),
    ),
    Claim(
        "Ranking, weighted by success, works better in practice than CQL's regularisation",
        "section 'Related work'",
        f"better: R-DQN − CQL, both on DDQN, {ALL_SIX}; {words.LATER}",
        better("R-DQN", ["CQL"], standard),
    ),
    Claim(
        "BVE and R-BVE improve on the behaviour that made the data",
        "section 'Ranking regularization'",
        "reaches: normalised score above that of the recorded episodes, no noise",
        reaches(["BVE", "R-BVE"], quiet, 0.0, measure=GAIN),
    ),
    _atari(
        "R-BVE and R-DQN outperform the other offline methods",
        "figure 'Atari offline policy selection games results'",
        f"better: {{R-BVE, R-DQN}} − {{BC, DDQN, CQL, REM, BCQ, IQN}}, {ALL_SIX}; IQN of "
        "N = N' = 8 and one setting; the weaker counts",
        worst(
            better("R-BVE", _OTHERS, standard),
            better("R-DQN", called("R-DQN", *_OTHERS), standard),
        ),
        printed="median of 37 games: R-BVE 109.1, R-DQN 108.2, IQN 104.8, REM 104.7, "
        "BCQ 102.6, CQL 98.9, DDQN 83.1, BC 50.8",
        figure="aggregates",
    ),
    _atari(
        "Ranking brings the largest improvement, more than BVE does without it",
        _ABLATIONS,
        f"better: R-DQN − {{DDQN, BVE}} and R-BVE − BVE, {ALL_SIX}; the weaker of the two counts",
        worst(
            better("R-DQN", ["DDQN", "BVE (R-DQN)"], standard),
            better("R-BVE", ["BVE"], standard),
        ),
    ),
    _atari(
        "R-BVE, ranking and BVE together, performs best",
        _ABLATIONS,
        f"better: R-BVE − {{DDQN, BVE, R-DQN, MC}}, {ALL_SIX}",
        better("R-BVE", ["DDQN", "BVE", "R-DQN", "MC"], standard),
    ),
    _atari(
        "BVE and DDQN attain similar returns on all of the data",
        _ABLATIONS,
        "similar: BVE − DDQN within ±10 points on 100% of the episodes",
        similar("BVE", ["DDQN"], words.share(1, 1), CLOSE),
        experiment="fractions",
    ),
    _atari(
        "Monte Carlo returns perform poorly beside BVE and DDQN",
        _ABLATIONS,
        f"better (lower): MC − {{BVE, DDQN}}, {ALL_SIX}",
        better("MC", ["BVE", "DDQN"], standard, sign=-1),
    ),
    _atari(
        "BC on all episodes, good and bad, works very poorly",
        _ON_ATARI,
        f"better: {{BVE, filtered BC}} − BC, {ALL_SIX}; the weaker of the two counts",
        worst(
            better("BVE", ["BC (BVE)"], standard),
            better("filtered BC", ["BC (filtered BC)"], standard),
        ),
        printed="on other games, median of 37: BC 50.8, DDQN 83.1",
    ),
    _atari(
        "Filtered BC works considerably better than BC",
        _ON_ATARI,
        f"better: filtered BC − BC, {ALL_SIX}",
        better("filtered BC", ["BC"], standard),
    ),
    _atari(
        "Filtered BC performs considerably worse than BVE",
        _ON_ATARI,
        f"better: BVE − filtered BC, {ALL_SIX}",
        better("BVE", ["filtered BC"], standard),
    ),
)
