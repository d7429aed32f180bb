"""Grid world: random, one step and optimal, where one step is not quite optimal"""

from rbve.paper.experiments import Theory

EXPERIMENT = Theory(
    "gridworld", "Appendix 'The surprising efficiency of 1-step of policy improvement', figure"
)
