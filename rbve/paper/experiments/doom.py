"""Doom from pixels, with memory: what does each method make of a scripted player's mistakes?

ViZDoom's `basic` (a monster to be shot) stands for first-person worlds that run on this machine.
A player that is told where the monster is is recorded with a quarter of its actions random; methods
learn from the frames alone.
"""

from rbve.paper.experiments import Data, Experiment, scales
from rbve.paper.experiments._methods import fixed

# At so few updates steps / 800 would copy the target after each, and values did not get anywhere.
_SCALES = scales(
    quick=(1, 50, 0.02, 1, 2, 8, 4, 10),
    desk=(3, 1_500, 0.3, 1, 5, 50, 8, 100),
    paper=(5, 50_000, 2.0, 1, 20, 100, 8, 400),
)

EXPERIMENT = Experiment(
    question="Which methods with memory learn to shoot from frames of a player that errs?",
    paper="Silent: in the place of DeepMind Lab, which cannot be installed here",
    data=(Data("vizdoom:basic", keep=1.0, script=0.25),),
    methods=(fixed("bc"), fixed("dqn"), fixed("bve"), fixed("rbve", lam=1.0)),
    scales=_SCALES,
    spec=dict(memory=128, sequence=10, burn_in=5, n_step=5, gamma=0.997, final_evaluations=2),
)
