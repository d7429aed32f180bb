"""Share of the data: over-estimation, value error and score as data becomes scarce."""

from rbve.paper.experiments import Experiment
from rbve.paper.experiments._methods import bsuite, fixed

EXPERIMENT = Experiment(
    question="Do Q-learning's values run away as data becomes scarce, and BVE's and R-BVE's not?",
    paper="Figures 'Over-estimation of Q-values' and 'Sample Efficiency'",
    data=bsuite(keep=(0.01, 0.05, 0.1, 0.25, 0.5, 1.0)),
    methods=(fixed("dqn"), fixed("rdqn"), fixed("bve"), fixed("rbve")),
    against="keep",
    measures=("overestimation", "start_overestimation", "value_error", "normalised_return"),
)
