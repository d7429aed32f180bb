"""Extrapolation: how often does a fit exceed the true maximum at unobserved actions?"""

from rbve.experiments import Theory

EXPERIMENT = Theory("extrapolation", "Figure 'Over-estimation from extrapolation'")
