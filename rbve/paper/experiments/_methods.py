"""What experiments share: bsuite's data, and methods with the settings that are tried."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

from rbve.paper.experiments import Data, Method, Settings

RATES: tuple[Settings, ...] = tuple(
    {"learning_rate": rate} for rate in (3e-4, 1e-4, 1e-3, 8e-5, 3e-5)
)
# The paper's λ first; the learning rate is the paper's largest unless said.
_RANKING: tuple[Settings, ...] = (
    *({"lam": lam} for lam in (0.005, 0.05, 0.5)),
    *({"lam": lam, "learning_rate": 1e-4} for lam in (0.005, 0.05)),
)

BC, _FILTERED_BC, MC, DDQN, BVE, REM = (
    Method(name, sweep=RATES) for name in ("bc", "filtered_bc", "mc", "dqn", "bve", "rem")
)
CQL = Method("cql", sweep=tuple({"alpha": alpha} for alpha in (0.01, 0.1, 0.05, 1.0, 0.005)))
_THRESHOLDS: tuple[Settings, ...] = tuple({"threshold": share} for share in (0.3, 0.1, 0.5))
BCQ = Method(
    "bcq",
    sweep=_THRESHOLDS + tuple({"threshold": 0.3, "learning_rate": rate} for rate in (1e-4, 1e-3)),
)
# One setting, N = N' = 8: at 64 it takes as long as all the others together on a CPU.
IQN = Method("iqn", settings={"samples": 8, "act_samples": 8})
RBVE = Method("rbve", sweep=_RANKING)
_RDQN = Method("rdqn", sweep=_RANKING)

# The paper's raw weights at its own λ stand beside the default ones.
_RBVE_PAPER = Method("rbve", settings={"normalise": "none", "lam": 0.005})

# Not the paper's: what is expected beside its methods. Their papers' or public code's values first.
BEYOND = (
    Method("iql", sweep=tuple({"expectile": tau} for tau in (0.7, 0.9, 0.5))),
    Method("crr", sweep=tuple({"beta": beta} for beta in (1.0, 0.1, 10.0))),
    Method("qr_cql", sweep=tuple({"alpha": alpha} for alpha in (1.0, 0.1, 4.0))),
    Method("munchausen", sweep=RATES),
)
# Each to be tuned; raw weights go with what R-BVE has otherwise.
TUNED = (
    *(BC, _FILTERED_BC, MC, DDQN, CQL, REM, BCQ, replace(IQN, sweep=RATES), BVE, RBVE, _RDQN),
    *BEYOND,
)
ALL = (BC, _FILTERED_BC, MC, DDQN, CQL, REM, BCQ, IQN, BVE, RBVE, _RBVE_PAPER, _RDQN)


def bsuite(**varied: Iterable[Any]) -> tuple[Data, ...]:
    """Its environments, each with every combination of the choices."""
    envs = ("catch", "cartpole", "mountain_car")
    grid = product(envs, *varied.values())
    return tuple(Data(env, **dict(zip(varied, each, strict=True))) for env, *each in grid)


def fixed(algorithm: str, **settings: object) -> Method:
    """A method with one setting, where the question is not which setting is best."""
    return Method(algorithm, settings=settings)


# How strongly actions the data did not take are pushed down: from not at all.
STRENGTHS = tuple(
    fixed(algorithm, lam=lam)
    for algorithm in ("rbve", "rdqn")
    for lam in (0.0, 0.005, 0.05, 0.5, 5.0)
)
