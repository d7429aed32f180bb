"""The methods experiments share, each with the settings that are tried."""

from __future__ import annotations

from rbve.paper.experiments import Method, Settings

RATES: tuple[Settings, ...] = tuple(
    {"learning_rate": rate} for rate in (3e-4, 1e-4, 1e-3, 8e-5, 3e-5)
)
# The paper's λ first; the learning rate is the paper's largest unless said.
RANKING: tuple[Settings, ...] = (
    {"lam": 0.005},
    {"lam": 0.05},
    {"lam": 0.5},
    {"lam": 0.005, "learning_rate": 1e-4},
    {"lam": 0.05, "learning_rate": 1e-4},
)

BC = Method("bc", sweep=RATES)
FILTERED_BC = Method("filtered_bc", sweep=RATES)
MC = Method("mc", sweep=RATES)
DDQN = Method("dqn", sweep=RATES)
BVE = Method("bve", sweep=RATES)
REM = Method("rem", sweep=RATES)
CQL = Method("cql", sweep=tuple({"alpha": alpha} for alpha in (0.01, 0.1, 0.05, 1.0, 0.005)))
BCQ = Method(
    "bcq",
    sweep=(
        {"threshold": 0.3},
        {"threshold": 0.1},
        {"threshold": 0.5},
        {"threshold": 0.3, "learning_rate": 1e-4},
        {"threshold": 0.3, "learning_rate": 1e-3},
    ),
)
# One setting, N = N' = 8: at 64 it takes as long as all the others together on a CPU.
IQN = Method("iqn", settings={"samples": 8, "act_samples": 8})
RBVE = Method("rbve", sweep=RANKING)
RDQN = Method("rdqn", sweep=RANKING)

# The paper's raw weights at its own λ stand beside the default ones.
RBVE_PAPER = Method("rbve", settings={"normalise": "none", "lam": 0.005})

ALL = (BC, FILTERED_BC, MC, DDQN, CQL, REM, BCQ, IQN, BVE, RBVE, RBVE_PAPER, RDQN)


def fixed(algorithm: str, **settings: object) -> Method:
    """A method with one setting, where the question is not which setting is best."""
    return Method(algorithm, settings=settings)


# How strongly actions the data did not take are pushed down: from not at all.
STRENGTHS = tuple(
    fixed(algorithm, lam=lam)
    for algorithm in ("rbve", "rdqn")
    for lam in (0.0, 0.005, 0.05, 0.5, 5.0)
)
