"""bsuite, with and without noise: which method learns best from a tenth of the data?"""

from rbve.paper.experiments import Experiment
from rbve.paper.experiments._methods import ALL, bsuite

EXPERIMENT = Experiment(
    question="Which method scores best on catch, cartpole and mountain_car?",
    paper="Figure 'Bsuite Experiments'",
    data=bsuite(noise=(0.0, 0.25)),
    methods=ALL,
    measures=("normalised_return", "return"),
)
