"""Boxing from pixels: what does each method make of a scripted player's games with mistakes?

One real game of Atari, within a CPU's means: a player that reads the console's memory is recorded
with a tenth of its actions random, and methods learn from the frames alone. Convolutions without
padding take six tenths of the multiplications of the paper's.
"""

from rbve.paper.experiments import Data, Experiment, scales
from rbve.paper.experiments._methods import fixed

_SCALES = scales(
    quick=(1, 1_000, 0.004, 1, 2, 2, 32),
    desk=(3, 100_000, 0.04, 1, 10, 8, 32),
    paper=(5, 2_000_000, 1.0, 1, 20, 100, 256),
)

EXPERIMENT = Experiment(
    question="Which methods learn to box from frames of a player that errs?",
    paper="Silent: its Atari data comes from an online agent; here one real game in its place",
    data=(Data("atari:Boxing", keep=1.0, script=0.1),),
    methods=(fixed("bc"), fixed("dqn"), fixed("cql"), fixed("bve"), fixed("rbve")),
    measures=("return", "normalised_return"),
    scales=_SCALES,
    spec={"stack": 4, "clip_rewards": True, "final_evaluations": 2, "torso": "atari_valid"},
)
