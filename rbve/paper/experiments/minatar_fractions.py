"""MinAtar, share of the data: over-estimation, value error and score as data becomes scarce."""

from rbve.paper.experiments._methods import fixed
from rbve.paper.experiments._minatar import experiment, games

EXPERIMENT = experiment(
    question="Do Q-learning's values run away as boards become scarce, and BVE's and R-BVE's not?",
    paper="Figures 'Over-estimation of Q-values' and 'Sample Efficiency'; here MinAtar",
    data=tuple(data for keep in (0.01, 0.05, 0.1, 1.0) for data in games(keep=keep)),
    methods=(fixed("dqn"), fixed("rdqn"), fixed("bve"), fixed("rbve")),
    figure="against",
    against="keep",
    measures=("overestimation", "start_overestimation", "value_error", "normalised_return"),
)
