"""MinAtar, share of the data: over-estimation, value error and score as data becomes scarce."""

from rbve.paper.experiments import fractions
from rbve.paper.experiments._minatar import as_in, games

EXPERIMENT = as_in(
    fractions.EXPERIMENT,
    question="Do Q-learning's values run away as boards become scarce, and BVE's and R-BVE's not?",
    data=tuple(data for keep in (0.01, 0.1, 1.0) for data in games(keep=keep)),
)
