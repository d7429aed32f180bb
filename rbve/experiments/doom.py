"""Doom from pixels, with memory: what can be learned from a player that knows nothing?

ViZDoom's `basic` (a monster to be shot) stands for first-person worlds that run on this machine.
Data is a uniform policy's, so a method is worth something where it plays better than its data.
"""

from rbve.experiments import Data, Experiment, Scale
from rbve.experiments._methods import fixed

SCALES = (
    Scale(
        1, 50, episodes=0.02, settings=1, evaluations=2, eval_episodes=8, batch_size=4,
        name="quick",
    ),
    Scale(
        3, 2_000, episodes=0.3, settings=1, evaluations=4, eval_episodes=50, batch_size=8,
        name="desk",
    ),
    Scale(
        5, 50_000, episodes=2.0, settings=1, evaluations=20, eval_episodes=100, batch_size=8,
        name="paper",
    ),
)  # fmt: skip

EXPERIMENT = Experiment(
    question="Do methods with memory play better than the random player whose frames they saw?",
    paper="Silent: in the place of DeepMind Lab, which cannot be installed here",
    data=(Data("vizdoom:basic", keep=1.0, uniform=True),),
    methods=(fixed("bc"), fixed("dqn"), fixed("bve"), fixed("rbve", lam=0.1)),
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
