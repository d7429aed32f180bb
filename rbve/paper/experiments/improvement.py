"""One-step improvement: is one greedy step on the behaviour's values optimal?"""

from rbve.paper.experiments import Theory

EXPERIMENT = Theory(
    "improvement",
    "Appendix 'The surprising efficiency of 1-step of policy improvement', two lemmas",
)
