"""bsuite's cartpole at the paper's size: does it tell what a twentieth of the updates told?

Meant for `--scale paper`: 2 million updates, the target copied every 2500, five learning rates.
"""

from dataclasses import replace

from rbve.paper.experiments import Data, Experiment
from rbve.paper.experiments._methods import BC, BVE, CQL, DDQN, RATES, RBVE

EXPERIMENT = Experiment(
    question="At the paper's size, do R-BVE and BVE score above DDQN, CQL and BC on cartpole?",
    paper="Figure 'Bsuite Experiments', cartpole without noise, five of its methods",
    data=(Data("cartpole"),),
    methods=(
        *(BC, DDQN, BVE),
        *(replace(each, settings=each.sweep[0], sweep=RATES) for each in (CQL, RBVE)),
    ),
    measures=("normalised_return", "return", "overestimation"),
)
