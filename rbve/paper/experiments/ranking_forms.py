"""Forms of the ranking term: hinge², softplus, list-wise; bounded Q; β and ν."""

from rbve.paper.experiments import Experiment
from rbve.paper.experiments._methods import bsuite, fixed

EXPERIMENT = Experiment(
    question="How much hangs on the form of the ranking term and on its numbers?",
    paper="Appendix 'Ranking Regularization' and the settings of section 4",
    data=bsuite(),
    methods=(
        fixed("rbve"),
        *(fixed("rbve", form=form) for form in ("softplus", "listwise")),
        fixed("rbve", bounded="true"),
        *(fixed("rbve", beta=beta) for beta in (0.1, 2.0)),
        *(fixed("rbve", nu=nu) for nu in (0.0, 0.5)),
        fixed("rbve", normalise="none"),
    ),
    against="setting",
    measures=("normalised_return", "overestimation", "action_gap"),
)
