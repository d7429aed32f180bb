"""MinAtar, strength of the ranking term: λ against action gap, over-estimation and score."""

from rbve.paper.experiments._methods import STRENGTHS
from rbve.paper.experiments._minatar import experiment, games

EXPERIMENT = experiment(
    question="On boards, does a larger λ widen the action gap and lower over-estimation?",
    paper="Appendix 'On the Effects of Regularization', two figures; here MinAtar",
    data=games(),
    methods=STRENGTHS,
    figure="against",
    against="lam",
    measures=("action_gap", "overestimation", "normalised_return"),
)
