"""bsuite, with and without noise: which method learns best from a tenth of the data?"""

from rbve.paper.experiments import Data, Experiment
from rbve.paper.experiments._methods import ALL

EXPERIMENT = Experiment(
    question="Which method scores best on catch, cartpole and mountain_car?",
    paper="Figure 'Bsuite Experiments'",
    data=tuple(
        Data(env, noise) for env in ("catch", "cartpole", "mountain_car") for noise in (0.0, 0.25)
    ),
    methods=ALL,
    figure="methods",
    measures=("normalised_return", "return"),
)
