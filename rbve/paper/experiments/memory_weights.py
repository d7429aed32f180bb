"""The weight of the ranking term with memory: raw V̂ as in the paper, or standardised."""

from rbve.paper.experiments import Data, Experiment, Method
from rbve.paper.experiments._memory import BEST, RANKING, SCALES, SPEC
from rbve.paper.experiments._methods import fixed

EXPERIMENT = Experiment(
    question="With memory, do the paper's raw weights do as well as those of standardised V̂?",
    paper="Section 'Ranking regularization': the weight; here object collection, with memory",
    # The levels of `memory` on which methods differ.
    data=tuple(Data(level, keep=1.0, memory=True) for level in ("collect:few", "collect:many")),
    methods=(
        Method("bve"),
        Method("rbve", sweep=RANKING),
        *(fixed("rbve", normalise="none", **strength) for strength in RANKING),
    ),
    figure="methods",
    measures=("normalised_return", "return"),
    scales=SCALES,
    spec=SPEC,
    best=BEST,
)
