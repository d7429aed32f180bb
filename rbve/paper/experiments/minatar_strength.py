"""MinAtar, strength of the ranking term: λ against action gap, over-estimation and score."""

from rbve.paper.experiments import ranking_strength
from rbve.paper.experiments._minatar import as_in, games

EXPERIMENT = as_in(
    ranking_strength.EXPERIMENT,
    question="On boards, does a larger λ widen the action gap and lower over-estimation?",
    data=games(),
)
