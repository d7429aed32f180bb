"""Coverage: an expert's data with more or less noise in its actions."""

from rbve.paper.experiments import Experiment
from rbve.paper.experiments._methods import bsuite, fixed

EXPERIMENT = Experiment(
    question="Is cloning best on a noiseless expert's data, and R-BVE on a noisy expert's?",
    paper="Figure 'Effect of coverage in the expert demonstrations'",
    data=bsuite(expert=(0.0, 0.01, 0.1, 0.25)),
    methods=tuple(map(fixed, ("bc", "dqn", "rdqn", "cql", "bve", "rbve"))),
    against="epsilon",
    measures=("normalised_return", "return"),
)
