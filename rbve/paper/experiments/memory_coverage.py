"""Coverage with memory: an expert's data with more or less noise in its actions."""

from rbve.paper.experiments import Data, Experiment
from rbve.paper.experiments._memory import BEST, METHODS, SCALES, SPEC

EXPERIMENT = Experiment(
    question="Is cloning best on a noiseless expert's data, and R-BVE on a noisy expert's?",
    paper="Figure 'Effect of coverage in the expert demonstrations' (seekavoid); here collection",
    data=tuple(
        Data("collect:few", expert=epsilon, keep=1.0, memory=True)
        for epsilon in (0.0, 0.01, 0.1, 0.25)
    ),
    methods=METHODS,
    figure="against",
    against="epsilon",
    measures=("normalised_return", "return"),
    scales=SCALES,
    spec=SPEC,
    best=BEST,
)
