"""MinAtar, robustness to the reward distribution: only poor, or only good, episodes."""

from rbve.paper.experiments import reward_distribution
from rbve.paper.experiments._minatar import as_in, games

EXPERIMENT = as_in(
    reward_distribution.EXPERIMENT,
    question="On boards, does BVE beat Q-learning below the mean return, and above it?",
    data=tuple(data for side in ("below", "above") for data in games(side=side)),
)
