"""Which action is logged under noise: the one chosen or the one executed."""

from rbve.paper.experiments import Experiment
from rbve.paper.experiments._methods import bsuite, fixed

EXPERIMENT = Experiment(
    question="Under noise, does it matter whether the log holds actions chosen or executed?",
    paper="Silent; the appendix 'BSuite Dataset' replaces actions in the environment",
    data=bsuite(noise=(0.25,), action=("chosen", "executed")),
    methods=(fixed("dqn"), fixed("bve"), fixed("rbve"), fixed("bc")),
    against="action",
    measures=("normalised_return", "return"),
)
