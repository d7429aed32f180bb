"""Robustness to the reward distribution: only poor, or only good, episodes."""

from rbve.paper.experiments import Experiment
from rbve.paper.experiments._methods import bsuite, fixed

EXPERIMENT = Experiment(
    question="Does BVE beat Q-learning on episodes below the mean return, and on those above?",
    paper="Appendix 'Atari: Robustness to Data'",
    data=bsuite(side=("below", "above")),
    methods=(fixed("dqn"), fixed("bve"), fixed("rbve"), fixed("bc")),
    against="side",
    measures=("normalised_return", "return"),
)
