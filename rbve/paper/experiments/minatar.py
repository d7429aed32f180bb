"""MinAtar for Atari: which method learns best from all that an online agent recorded?"""

from rbve.paper.experiments._methods import ALL
from rbve.paper.experiments._minatar import ALL_GAMES, experiment, games

EXPERIMENT = experiment(
    question="Which method scores best on boards: the ablation and the baselines of the paper?",
    paper="Figures 'Atari offline policy selection games' and 'Atari ablations'; here MinAtar",
    data=games(ALL_GAMES),
    methods=ALL,
    measures=("normalised_return", "return", "overestimation"),
)
