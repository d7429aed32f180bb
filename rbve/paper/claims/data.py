"""What the data does: how much there is, how good it is, how much it covers."""

from __future__ import annotations

from functools import partial

from rbve.paper.claims import FOR_ATARI, FOR_LAB, Claim
from rbve.paper.claims._words import CLOSE, PLENTY, SCARCE, called, expert, side
from rbve.paper.judging.effects import METHODS
from rbve.paper.judging.rules import alike, better, between, steadier, widens, worst

PLACE = 4
NOISY, NOISELESS = expert(0.25), expert(0.0)
RIVALS = ("DDQN", "R-DQN")
COVERAGE = "section 'The importance of coverage'"

_fractions = partial(Claim, here=FOR_ATARI, experiment="fractions")
_rewards = partial(Claim, here=FOR_ATARI, experiment="reward_distribution")
_coverage = partial(Claim, here=FOR_LAB, experiment="coverage")

CLAIMS = (
    _fractions(
        "With little data BVE and R-BVE score above DQN and R-DQN",
        "figure 'Sample Efficiency'",
        "better: {BVE, R-BVE} − {DDQN, R-DQN} at 5% or less; the weaker of the two counts",
        worst(better("BVE", RIVALS, SCARCE), better("R-BVE", called("R-BVE", *RIVALS), SCARCE)),
    ),
    _fractions(
        "R-BVE is particularly effective where data is scarce",
        "section 'Discussion'",
        "widens: its lead over DDQN at 5% or less − at 50% or more, above 0",
        widens("R-BVE", ["DDQN"], SCARCE, PLENTY),
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
        steadier("BVE", ["DDQN"], side("below"), side("above")),
    ),
    _coverage(
        "On a noiseless expert's data BC outperforms all offline RL",
        COVERAGE,
        "better: BC − {DDQN, R-DQN, CQL, BVE, R-BVE}, expert ε 0, 10% of the episodes",
        better("BC", [*RIVALS, "CQL", "BVE", "R-BVE"], NOISELESS),
        printed="seekavoid ε 0: BC 28.0, R2D2 4.7, CQL 12.8, BVE 4.4, R-BVE 17.1",
    ),
    _coverage(
        "On a noisy expert's data R-BVE outperforms BC",
        COVERAGE,
        "better: R-BVE − BC, expert ε .25, 10% of the episodes",
        better("R-BVE", ["BC"], NOISY),
        printed="seekavoid ε .25: R-BVE 25.6 ± 7.0, BC 17.5 ± 7.5",
    ),
    _coverage(
        "Noise in the expert's actions makes BC worse",
        "figure 'Effect of coverage'",
        "between: BC at expert ε .25 − at ε 0, below 0",
        between(["BC"], NOISY, NOISELESS, sign=-1),
        printed="seekavoid: BC 28.0 ± 7.6 at ε 0, 17.5 ± 7.5 at ε .25",
    ),
    _coverage(
        "Noise in the expert's actions helps DDQN (with memory R2D2), BVE and R-BVE",
        COVERAGE,
        "between: {DDQN, BVE, R-BVE} at expert ε .25 − at ε 0, above 0",
        between(["DDQN", "BVE", "R-BVE"], NOISY, NOISELESS),
        printed="seekavoid, ε 0 to .25: R2D2 4.7 to 13.5, BVE 4.4 to 9.0, R-BVE 17.1 to 25.6",
    ),
    _coverage(
        "Noise in the expert's actions leaves CQL unaffected",
        COVERAGE,
        "similar: CQL at expert ε .25 − at ε 0 within ±10 points",
        alike(["CQL"], NOISY, NOISELESS, CLOSE),
        printed="seekavoid: 12.8 ± 10.7 at ε 0, 13.5 ± 5.1 at ε .25",
    ),
    _coverage(
        "Noise in the expert's actions leaves R-DQN (with memory R-R2D2) unaffected",
        COVERAGE,
        "similar: R-DQN at expert ε .25 − at ε 0 within ±10 points",
        alike(["R-DQN"], NOISY, NOISELESS, CLOSE),
    ),
    _coverage(
        "R-BVE from a noisy expert matches BC from a noiseless one",
        "figure 'Effect of coverage'",
        "similar: R-BVE at expert ε .25 − BC at ε 0 within ±10 points",
        alike({"R-BVE − BC": METHODS["R-BVE"]}, NOISY, NOISELESS, CLOSE, "BC"),
        printed="seekavoid: R-BVE 25.6 ± 7.0, BC 28.0 ± 7.6",
    ),
)
