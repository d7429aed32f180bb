"""Doubly robust estimation (Jiang and Li, 2016), cross-fitted.

    V̂ = 1/E Σ_i Σ_t γ^t ( w_it (r_it − Q̂(s_it, a_it)) + w_i,t−1 V̂(s_it) )

Importance sampling of what a fitted Q̂ leaves unexplained: unbiased if the propensities are right,
whatever Q̂ is, since Q̂ comes from other episodes; and the better Q̂, the less variance.
"""

import numpy as np

from rbve.off_policy.case import OpeCase
from rbve.off_policy.estimators import Estimator

ESTIMATOR = Estimator("DR", weights=True, values=True, order=10)


def estimate(case: OpeCase) -> np.ndarray:
    residual = case.weight * (case.reward - case.q_taken)
    return case.log.sum(case.log.discount * (residual + case.log.before(case.weight) * case.v))
