"""The paper's empirical claims, each with the rule that judges it here.

Rules and thresholds stand in this file before the runs they judge. Claims about Atari and DeepMind
Lab are judged on bsuite's environments where their question can be asked there, and say so; those
that need the paper's own data are 'not run'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rbve.report.finals import Final, Problem
from rbve.report.rules import (
    Judgement,
    Pick,
    better,
    between,
    logarithm,
    ordered,
    reaches,
    rising,
)

DEFAULT = {"normalise": "dataset"}
RBVE, RDQN = Pick("rbve", DEFAULT), Pick("rdqn", DEFAULT)
DDQN, BVE, MC, BC = Pick("dqn"), Pick("bve"), Pick("mc"), Pick("bc")
CQL, REM, BCQ, IQN, FILTERED = (
    Pick("cql"),
    Pick("rem"),
    Pick("bcq"),
    Pick("iqn"),
    Pick("filtered_bc"),
)
BASELINES = {"DDQN": DDQN, "CQL": CQL, "REM": REM, "BCQ": BCQ}
PAPER_LAM = {"lam": 0.005}
FOUR = {"DDQN": DDQN, "R-DQN": RDQN, "BVE": BVE, "R-BVE": RBVE}
LAMBDAS = (0.005, 0.05, 0.5, 5.0)
LOW, HIGH = 0.05, 0.5  # 'low data' is this share of the episodes or less, 'high' this or more
EXPERT = 90.0  # normalised score that 'almost reaches' the online agent's best


@dataclass(frozen=True)
class Claim:
    text: str
    paper: str  # where it stands
    rule: str  # in words
    judge: Callable[[Sequence[Final]], Judgement]
    here: str = "bsuite, 10% of the episodes"  # what stands in for the paper's data
    experiment: str = "bsuite"  # whose runs are judged; "" = none


def standard(problem: Problem) -> bool:
    """The paper's bsuite setting."""
    return problem.epsilon is None and problem.keep == 0.1 and plain(problem)


def plain(problem: Problem) -> bool:
    return problem.side == "all" and problem.action == "chosen"


def on(env: str, noise: float | None = None) -> Callable[[Problem], bool]:
    return lambda p: standard(p) and p.env == env and (noise is None or p.noise == noise)


def quiet(problem: Problem) -> bool:
    return standard(problem) and problem.noise == 0


def share(low: float, high: float) -> Callable[[Problem], bool]:
    return lambda p: plain(p) and p.epsilon is None and p.noise == 0 and low <= p.keep <= high


def side(name: str) -> Callable[[Problem], bool]:
    return lambda p: p.side == name and p.epsilon is None


def expert(epsilon: float) -> Callable[[Problem], bool]:
    return lambda p: p.epsilon == epsilon and plain(p)


def not_run(why: str) -> Callable[[Sequence[Final]], Judgement]:
    return lambda found: Judgement("not run", why)


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
        "λ = .005, tuned on Atari, serves bsuite unchanged",
        "section 'Experiments'",
        "better: R-BVE at λ = .005 − BVE, all six problems",
        lambda found: better(found, Pick("rbve", {**DEFAULT, **PAPER_LAM}), {"BVE": BVE}, standard),
    ),
    Claim(
        "Ranking brings the largest improvement: R-DQN above DDQN, R-BVE above BVE",
        "figure 'Atari ablations'",
        "better: R-DQN − DDQN and R-BVE − BVE, all six problems; the weaker of the two counts",
        lambda found: worst(
            better(found, RDQN, {"DDQN": DDQN}, standard),
            better(found, RBVE, {"BVE": BVE}, standard),
        ),
        "bsuite for Atari",
    ),
    Claim(
        "R-BVE, ranking and BVE together, performs best",
        "figure 'Atari ablations'",
        "better: R-BVE − {DDQN, BVE, R-DQN, MC}, all six problems",
        lambda found: better(
            found, RBVE, {"DDQN": DDQN, "BVE": BVE, "R-DQN": RDQN, "MC": MC}, standard
        ),
        "bsuite for Atari",
    ),
    Claim(
        "Monte Carlo returns perform poorly beside BVE",
        "figure 'Atari ablations'",
        "better: BVE − MC, all six problems",
        lambda found: better(found, BVE, {"MC": MC}, standard),
        "bsuite for Atari",
    ),
    Claim(
        "Filtered BC works considerably better than BC",
        "section 'Ablation Experiments on Atari'",
        "better: filtered BC − BC, all six problems",
        lambda found: better(found, FILTERED, {"BC": BC}, standard),
        "bsuite for Atari",
    ),
    Claim(
        "Filtered BC performs considerably worse than BVE",
        "section 'Ablation Experiments on Atari'",
        "better: BVE − filtered BC, all six problems",
        lambda found: better(found, BVE, {"filtered BC": FILTERED}, standard),
        "bsuite for Atari",
    ),
    Claim(
        "Over-estimation: DDQN > R-DQN > BVE > R-BVE",
        "appendix 'Over-estimation on Online Policy Selection Games'",
        "ordered: log₁₀(1 + over-estimation error), 10% of the data, no noise",
        lambda found: ordered(found, FOUR, quiet, "overestimation", logarithm),
        "bsuite for Atari",
    ),
    Claim(
        "DDQN's over-estimation grows severely as data becomes scarce",
        "figure 'Over-estimation of Q-values'",
        "between: DDQN at 5% or less − at 50% or more, log₁₀(1 + over-estimation error)",
        lambda found: between(
            found, {"DDQN": DDQN}, share(0, LOW), share(HIGH, 1), "overestimation", 1, logarithm
        ),
        "bsuite for Atari",
        experiment="fractions",
    ),
    Claim(
        "BVE and R-BVE reduce over-estimation drastically at every share of the data",
        "figure 'Over-estimation of Q-values'",
        "better (lower): {BVE, R-BVE} − DDQN in log₁₀(1 + error), all shares; the weaker counts",
        lambda found: worst(
            better(found, BVE, {"DDQN (BVE)": DDQN}, share(0, 1), "overestimation", -1, logarithm),
            better(
                found, RBVE, {"DDQN (R-BVE)": DDQN}, share(0, 1), "overestimation", -1, logarithm
            ),
        ),
        "bsuite for Atari",
        experiment="fractions",
    ),
    Claim(
        "With little data BVE and R-BVE score above DQN and R-DQN",
        "figure 'Sample Efficiency'",
        "better: BVE − DDQN and R-BVE − R-DQN at 5% or less; the weaker of the two counts",
        lambda found: worst(
            better(found, BVE, {"DDQN": DDQN}, share(0, LOW)),
            better(found, RBVE, {"R-DQN": RDQN}, share(0, LOW)),
        ),
        "bsuite for Atari",
        experiment="fractions",
    ),
    Claim(
        "BVE beats DQN on episodes below the mean return, and on those above",
        "appendix 'Atari: Robustness to Data'",
        "better: BVE − DDQN on each side; the weaker of the two counts",
        lambda found: worst(
            better(found, BVE, {"DDQN, below": DDQN}, side("below")),
            better(found, BVE, {"DDQN, above": DDQN}, side("above")),
        ),
        "bsuite for Atari",
        experiment="reward_distribution",
    ),
    Claim(
        "A larger λ widens the action gap",
        "appendix 'On the Effects of Regularization'",
        "rising: action gap of R-BVE along λ = .005, .05, .5, 5",
        lambda found: rising(found, along("rbve"), quiet, "action_gap"),
        "bsuite for Atari",
        experiment="ranking_strength",
    ),
    Claim(
        "A larger λ lowers over-estimation",
        "appendix 'On the Effects of Regularization'",
        "falling: log₁₀(1 + over-estimation error) of R-DQN along λ = .005, .05, .5, 5",
        lambda found: rising(found, along("rdqn"), quiet, "overestimation", -1, logarithm),
        "bsuite for Atari",
        experiment="ranking_strength",
    ),
    Claim(
        "On a noiseless expert's data BC outperforms all offline RL",
        "figure 'Effect of coverage'",
        "better: BC − {DDQN, CQL, BVE, R-BVE}, expert ε 0",
        lambda found: better(
            found, BC, {"DDQN": DDQN, "CQL": CQL, "BVE": BVE, "R-BVE": RBVE}, expert(0.0)
        ),
        "bsuite for DeepMind Lab",
        experiment="coverage",
    ),
    Claim(
        "On a noisy expert's data R-BVE outperforms BC",
        "figure 'Effect of coverage'",
        "better: R-BVE − BC, expert ε .25",
        lambda found: better(found, RBVE, {"BC": BC}, expert(0.25)),
        "bsuite for DeepMind Lab",
        experiment="coverage",
    ),
    Claim(
        "Noise in the expert's actions makes BC worse",
        "figure 'Effect of coverage'",
        "between: BC at expert ε .25 − at ε 0, below 0",
        lambda found: between(
            found, {"BC": BC}, expert(0.25), expert(0.0), "normalised_return", -1
        ),
        "bsuite for DeepMind Lab",
        experiment="coverage",
    ),
    Claim(
        "Noise in the expert's actions helps BVE and R-BVE",
        "figure 'Effect of coverage'",
        "between: {BVE, R-BVE} at expert ε .25 − at ε 0, above 0",
        lambda found: between(
            found, {"BVE": BVE, "R-BVE": RBVE}, expert(0.25), expert(0.0), "normalised_return"
        ),
        "bsuite for DeepMind Lab",
        experiment="coverage",
    ),
    Claim(
        "R-BVE has the best median score over 37 Atari games (109.1)",
        "table 'Atari Offline Policy Selection Results'",
        "needs RL Unplugged's Atari data and accelerators",
        not_run("needs RL Unplugged's Atari data and accelerators"),
        "",
        experiment="",
    ),
    Claim(
        "R-BVE performs best on all DeepMind Lab levels",
        "figure 'DeepMind Lab Results'",
        "needs RL Unplugged's DeepMind Lab data and accelerators",
        not_run("needs RL Unplugged's DeepMind Lab data and accelerators"),
        "",
        experiment="",
    ),
)

ORDER = ("not run", "not here", "partly", "reproduced")


def worst(*parts: Judgement) -> Judgement:
    """A claim of several parts is as good as its weakest."""
    verdict = min((part.verdict for part in parts), key=ORDER.index)
    return Judgement(
        verdict,
        "; ".join(part.measured for part in parts),
        {name: effect for part in parts for name, effect in part.effects.items()},
    )


def along(algorithm: str) -> list[tuple[str, Pick]]:
    return [(f"λ {lam:g}", Pick(algorithm, {**DEFAULT, "lam": lam})) for lam in LAMBDAS]
