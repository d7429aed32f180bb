"""Importance sampling of whole episodes.

    V̂ = 1/E Σ_i w_i G_i,    w_i = Π_t π(a_t | s_t) / μ(a_t | s_t)

G_i is an episode's discounted return. Unbiased where μ > 0 wherever π > 0. On one-step logs this
is inverse propensity weighting (IPW).
"""

import numpy as np

from rbve.off_policy.case import OpeCase
from rbve.off_policy.estimators import Estimator

ESTIMATOR = Estimator("IS", "IPW", weights=True, unheld=True, order=40)


def estimate(case: OpeCase) -> np.ndarray:
    return case.log.last(case.weight) * case.returns
