"""Memory for DeepMind Lab: which method scores best where little is seen at a time?"""

from rbve.paper.experiments import Experiment
from rbve.paper.experiments._memory import BEST, METHODS, SCALES, SPEC, levels

EXPERIMENT = Experiment(
    question="Which recurrent method scores best on levels that have to be remembered?",
    paper="Figure 'DeepMind Lab Results' and the appendix's table; here levels that run on a CPU",
    data=levels(),
    methods=METHODS,
    figure="methods",
    measures=("normalised_return", "return"),
    scales=SCALES,
    spec=SPEC,
    best=BEST,
)
