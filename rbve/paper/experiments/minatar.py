"""MinAtar for Atari: which method learns best from all that an online agent recorded?

Methods that the paper does not compare are there too; claims do not look at them.
"""

from rbve.paper.experiments._methods import ALL, BEYOND
from rbve.paper.experiments._minatar import ALL_GAMES, experiment, games

EXPERIMENT = experiment(
    question="Which method scores best on boards: the ablation and the baselines of the paper?",
    paper="Figures 'Atari offline policy selection games' and 'Atari ablations'; here MinAtar",
    data=games(ALL_GAMES),
    methods=(*ALL, *BEYOND),
    measures=("normalised_return", "return", "overestimation"),
)
