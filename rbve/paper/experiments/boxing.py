"""Boxing from pixels: what does each method make of a scripted player's games with mistakes?

One real game of Atari, within a CPU's means: a player that reads the console's memory is recorded
with a tenth of its actions random, and methods learn from the frames alone. Convolutions without
padding take six tenths of the multiplications of the paper's.
"""

from rbve.paper.experiments import Data, Experiment, Scale
from rbve.paper.experiments._methods import fixed

SCALES = (
    Scale(
        1, 1_000, episodes=0.004, settings=1, evaluations=2, eval_episodes=2, batch_size=32,
        name="quick",
    ),
    Scale(
        1, 10_000, episodes=0.04, settings=1, evaluations=5, eval_episodes=8, batch_size=32,
        name="desk",
    ),
    Scale(
        5, 2_000_000, episodes=1.0, settings=1, evaluations=20, eval_episodes=100,
        batch_size=256, name="paper",
    ),
)  # fmt: skip

EXPERIMENT = Experiment(
    question="Which methods learn to box from frames of a player that errs?",
    paper="Silent: its Atari data comes from an online agent; here one real game in its place",
    data=(Data("atari:Boxing", keep=1.0, script=0.1),),
    methods=(fixed("bc"), fixed("dqn"), fixed("cql"), fixed("bve"), fixed("rbve")),
    figure="methods",
    measures=("return", "normalised_return"),
    scales=SCALES,
    spec={"stack": 4, "clip_rewards": True, "final_evaluations": 2, "torso": "atari_valid"},
)
