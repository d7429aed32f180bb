"""MinAtar, a tenth of the data: which method scores best where data is scarce?"""

from rbve.paper.experiments._methods import ALL
from rbve.paper.experiments._minatar import experiment, games

EXPERIMENT = experiment(
    question="Which method scores best on boards when a tenth of the episodes is there?",
    paper="Figure 'Sample Efficiency', with all methods; here MinAtar",
    data=games(keep=0.1),
    methods=ALL,
    measures=("normalised_return", "return", "overestimation"),
)
