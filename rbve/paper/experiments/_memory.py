"""What the experiments with memory share: levels that show little at a time, and their sizes.

They stand in for DeepMind Lab's, which cannot run here: object collection (many, few) for the
levels of that name, MemoryS8 for matching objects, FourRooms and DoorKey for navigation. Collection
also has two harder levels, rare and crowded, of no level there. A level counts only if the agents
that recorded it came half way from random to the best return known.
"""

from functools import partial

from rbve.paper.experiments import Data, Experiment, Method, scales
from rbve.training import presets

# Best returns known, measured by tools/level_returns.py; of memory_len, the best there is.
BEST = {
    "memory_len:10": 1.0,
    "collect:many": 24.68,
    "collect:few": 14.23,
    "collect:rare": 22.91,
    "collect:crowded": 30.45,
    "xminigrid:MiniGrid-MemoryS8": 0.9724,
    "xminigrid:MiniGrid-FourRooms": 0.856,
    "xminigrid:MiniGrid-DoorKey-5x5": 0.9645,
}
_SPEC = presets.load("small-memory")
_SCALES = scales(
    quick=(2, 1_000, 0.1, 1, 2, 16, 8),
    desk=(3, 50_000, 1.0, 2, 20, 100, 8),
    paper=(5, 50_000, 4.0, 5, 20, 100, 8),
)
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
recorded = partial(Data, keep=1.0, memory=True)
experiment = partial(
    Experiment, measures=("normalised_return", "return"), scales=_SCALES, spec=_SPEC, best=BEST
)
