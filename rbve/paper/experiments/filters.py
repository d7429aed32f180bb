"""The weight of the ranking term: which filter, which scale of V̂."""

from rbve.paper.experiments import Data, Experiment
from rbve.paper.experiments._methods import fixed

EXPERIMENT = Experiment(
    question="Does weighing states by how well the episode went matter, and in which form?",
    paper="Section 'Ranking regularization': filters that were tried",
    data=tuple(Data(env) for env in ("catch", "cartpole", "mountain_car")),
    methods=(
        fixed("rbve", filter="none"),
        fixed("rbve", filter="binary"),
        *(
            fixed("rbve", filter=name, normalise=scale)
            for name in ("exponential", "advantage")
            for scale in ("dataset", "none")
        ),
    ),
    figure="against",
    against="filter",
    measures=("normalised_return", "overestimation", "action_gap"),
)
