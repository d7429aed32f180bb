"""MinAtar, robustness to the reward distribution: only poor, or only good, episodes."""

from rbve.paper.experiments._methods import fixed
from rbve.paper.experiments._minatar import experiment, games

EXPERIMENT = experiment(
    question="On boards, does BVE beat Q-learning below the mean return, and above it?",
    paper="Appendix 'Atari: Robustness to Data'; here MinAtar",
    data=tuple(data for side in ("below", "above") for data in games(side=side)),
    methods=(fixed("dqn"), fixed("bve"), fixed("rbve"), fixed("bc")),
    figure="against",
    against="side",
    measures=("normalised_return", "return"),
)
