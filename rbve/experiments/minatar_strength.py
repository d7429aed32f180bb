"""MinAtar, strength of the ranking term: λ against action gap, over-estimation and score."""

from rbve.experiments import Experiment
from rbve.experiments._methods import fixed
from rbve.experiments._minatar import LEARNED, SCALES, games

EXPERIMENT = Experiment(
    question="On boards, does a larger λ widen the action gap and lower over-estimation?",
    paper="Appendix 'On the Effects of Regularization', two figures; here MinAtar",
    data=games(),
    methods=tuple(
        fixed(algorithm, lam=lam)
        for algorithm in ("rbve", "rdqn")
        for lam in (0.0, 0.005, 0.05, 0.5, 5.0)
    ),
    figure="against",
    against="lam",
    measures=("action_gap", "overestimation", "normalised_return"),
    scales=SCALES,
    learned=LEARNED,
)
