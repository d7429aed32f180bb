"""The weight of the ranking term: which filter, which scale of V̂."""

from rbve.paper.experiments import Experiment
from rbve.paper.experiments._methods import bsuite, fixed

EXPERIMENT = Experiment(
    question="Does weighing states by how well the episode went matter, and in which form?",
    paper="Section 'Ranking regularization': filters that were tried",
    data=bsuite(),
    methods=(
        *(fixed("rbve", filter=name) for name in ("none", "binary")),
        *(fixed("rbve", filter="exponential", normalise=scale) for scale in ("dataset", "none")),
        *(fixed("rbve", filter="advantage", normalise=scale) for scale in ("dataset", "none")),
    ),
    against="filter",
    measures=("normalised_return", "overestimation", "action_gap"),
)
