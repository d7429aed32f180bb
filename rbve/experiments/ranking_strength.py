"""Strength of the ranking term: what λ does to the action gap, over-estimation and score."""

from rbve.experiments import Data, Experiment
from rbve.experiments._methods import fixed

EXPERIMENT = Experiment(
    question="Does a larger λ widen the action gap and lower over-estimation?",
    paper="Appendix 'On the Effects of Regularization', two figures",
    data=tuple(Data(env) for env in ("catch", "cartpole", "mountain_car")),
    methods=tuple(
        fixed(algorithm, lam=lam)
        for algorithm in ("rbve", "rdqn")
        for lam in (0.0, 0.005, 0.05, 0.5, 5.0)
    ),
    figure="against",
    against="lam",
    measures=("action_gap", "overestimation", "normalised_return"),
)
