"""The weight of the ranking term with memory: raw V̂ as in the paper, or standardised."""

from rbve.paper.experiments import Method
from rbve.paper.experiments._memory import RANKING, experiment, recorded
from rbve.paper.experiments._methods import fixed

EXPERIMENT = experiment(
    question="With memory, do the paper's raw weights do as well as those of standardised V̂?",
    paper="Section 'Ranking regularization': the weight; here object collection, with memory",
    # The levels of `memory` on which methods differ.
    data=tuple(map(recorded, ("collect:few", "collect:many"))),
    methods=(
        Method("bve"),
        Method("rbve", sweep=RANKING),
        *(fixed("rbve", normalise="none", **strength) for strength in RANKING),
    ),
)
