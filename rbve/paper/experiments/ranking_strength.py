"""Strength of the ranking term: what λ does to the action gap, over-estimation and score."""

from rbve.paper.experiments import Experiment
from rbve.paper.experiments._methods import STRENGTHS, bsuite

EXPERIMENT = Experiment(
    question="Does a larger λ widen the action gap and lower over-estimation?",
    paper="Appendix 'On the Effects of Regularization', two figures",
    data=bsuite(),
    methods=STRENGTHS,
    against="lam",
    measures=("action_gap", "overestimation", "normalised_return"),
)
