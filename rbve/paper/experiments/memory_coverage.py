"""Coverage with memory: an expert's data with more or less noise in its actions."""

from rbve.paper.experiments._memory import METHODS, experiment, recorded

EXPERIMENT = experiment(
    question="Is cloning best on a noiseless expert's data, and R-BVE on a noisy expert's?",
    paper="Figure 'Effect of coverage in the expert demonstrations' (seekavoid); here collection",
    data=tuple(recorded("collect:few", expert=epsilon) for epsilon in (0.0, 0.01, 0.1, 0.25)),
    methods=METHODS,
    against="epsilon",
)
