"""Forms of the ranking term: hinge², softplus, list-wise; bounded Q; β and ν."""

from rbve.paper.experiments import Data, Experiment
from rbve.paper.experiments._methods import fixed

EXPERIMENT = Experiment(
    question="How much hangs on the form of the ranking term and on its numbers?",
    paper="Appendix 'Ranking Regularization' and the settings of section 4",
    data=tuple(Data(env) for env in ("catch", "cartpole", "mountain_car")),
    methods=(
        fixed("rbve"),
        fixed("rbve", form="softplus"),
        fixed("rbve", form="listwise"),
        fixed("rbve", bounded="true"),
        fixed("rbve", beta=0.1),
        fixed("rbve", beta=2.0),
        fixed("rbve", nu=0.0),
        fixed("rbve", nu=0.5),
        fixed("rbve", normalise="none"),
    ),
    figure="against",
    against="setting",
    measures=("normalised_return", "overestimation", "action_gap"),
)
