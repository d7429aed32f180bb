"""The demo: does one step of improvement, with ranking, beat Q-learning on little data?

Catch at the paper's 10% of episodes, and cartpole at 1%, where Q-learning over-estimates most.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Problem:
    env: str
    keep: float  # share of the recorded episodes that trains
    steps: int  # updates per run
    target_period: int  # updates between target syncs: steps / 800, as in the studies
    methods: tuple[tuple[str, dict[str, Any]], ...] = field(default_factory=tuple)
    seeds: tuple[int, ...] = (0, 1, 2)  # one recorded dataset each


BASELINES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bve", {}),
    ("dqn", {}),
    ("cql", {}),
    ("bcq", {}),
    ("bc", {}),
    ("filtered_bc", {}),
)

# λ = .005 is the paper's; on cartpole's scale of values it is nearly inert, so .5 stands beside it.
PROBLEMS = (
    Problem("catch", keep=0.1, steps=15_000, target_period=18, methods=(("rbve", {}), *BASELINES)),
    Problem(
        "cartpole",
        keep=0.01,
        steps=30_000,
        target_period=37,
        methods=(("rbve", {"lam": 0.005}), ("rbve", {"lam": 0.5}), *BASELINES),
    ),
)
