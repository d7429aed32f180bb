"""What the experiments with memory share: levels that show little at a time, and their sizes.

They stand in for DeepMind Lab's, which cannot run here: object collection (many, few) for the
levels of that name, MemoryS8 for matching objects, FourRooms and DoorKey for navigation. A level
counts only if the agents that recorded it came half way from random to the best return known.
"""

from __future__ import annotations

from rbve.paper.experiments import Data, Method, Scale
from rbve.training import presets

# Best returns known, measured by tools/level_returns.py; of memory_len, the best there is.
BEST = {
    "memory_len:10": 1.0,
    "collect:many": 24.68,
    "collect:few": 14.23,
    "xminigrid:MiniGrid-MemoryS8": 0.9724,
    "xminigrid:MiniGrid-FourRooms": 0.856,
    "xminigrid:MiniGrid-DoorKey-5x5": 0.9645,
}
SPEC = presets.load("small-memory")
SCALES = (
    Scale(
        2, 1_000, episodes=0.1, settings=1, evaluations=2, eval_episodes=16, batch_size=8,
        name="quick",
    ),
    Scale(
        4, 5_000, episodes=1.0, settings=2, evaluations=5, eval_episodes=100, batch_size=8,
        name="desk",
    ),
    Scale(
        5, 50_000, episodes=4.0, settings=5, evaluations=20, eval_episodes=100, batch_size=8,
        name="paper",
    ),
)  # fmt: skip
# λ as in the paper, then stronger, with one of the learning rates and margins it tries. (It keeps
# λ and tunes those two.)
RANKING = ({"lam": 0.005}, {"lam": 0.1})
METHODS = (
    Method("bc"),
    Method("dqn"),  # with memory it is R2D2
    Method("rdqn", sweep=RANKING),
    Method("cql", sweep=({"alpha": 0.01}, {"alpha": 0.1})),
    Method("bve"),
    Method("rbve", sweep=RANKING),
)


def levels(**choices: object) -> tuple[Data, ...]:
    return tuple(Data(level, keep=1.0, memory=True, **choices) for level in BEST)  # type: ignore[arg-type]
