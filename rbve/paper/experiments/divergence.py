"""Divergence: can Q-learning escape to infinity on data where BVE stays bounded?"""

from rbve.paper.experiments import Theory

EXPERIMENT = Theory(
    "divergence", "Appendix 'Q-learning can escape to infinity in the offline case'"
)
