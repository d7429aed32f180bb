"""Extrapolation: how often does a fit exceed the true maximum at unobserved actions?"""

from rbve.paper.experiments import Theory

EXPERIMENT = Theory("extrapolation", "Figure 'Over-estimation from extrapolation'")
