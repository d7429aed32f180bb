"""Doom from pixels, with memory: what does each method make of a scripted player's mistakes?

ViZDoom's `basic` (a monster to be shot) stands for first-person worlds that run on this machine.
A player that is told where the monster is is recorded with a quarter of its actions random; methods
learn from the frames alone.
"""

from rbve.paper.experiments import Data, Experiment, Scale
from rbve.paper.experiments._methods import fixed

# At so few updates steps / 800 would copy the target after each, and values did not get anywhere.
SCALES = (
    Scale(
        1, 50, episodes=0.02, settings=1, evaluations=2, eval_episodes=8, batch_size=4,
        target_period=10, name="quick",
    ),
    Scale(
        3, 1_500, episodes=0.3, settings=1, evaluations=5, eval_episodes=50, batch_size=8,
        target_period=100, name="desk",
    ),
    Scale(
        5, 50_000, episodes=2.0, settings=1, evaluations=20, eval_episodes=100, batch_size=8,
        target_period=400, name="paper",
    ),
)  # fmt: skip

EXPERIMENT = Experiment(
    question="Which methods with memory learn to shoot from frames of a player that errs?",
    paper="Silent: in the place of DeepMind Lab, which cannot be installed here",
    data=(Data("vizdoom:basic", keep=1.0, script=0.25),),
    methods=(fixed("bc"), fixed("dqn"), fixed("bve"), fixed("rbve", lam=1.0)),
    figure="methods",
    measures=("return",),
    scales=SCALES,
    spec={
        "memory": 128,
        "sequence": 10,
        "burn_in": 5,
        "n_step": 5,
        "gamma": 0.997,
        "final_evaluations": 2,
    },
)
