"""DR with optimistic shrinkage (Su et al., 2020) on one-step logs, λ chosen by SLOPE.

    V̂ = 1/N Σ_i ( V̂(s_i) + λ w_i / (w_i² + λ) · (r_i − Q̂(s_i, a_i)) )

Large weights are shrunk; λ = ∞ is DR, λ = 0 the direct method. SLOPE takes on bias, of which the
spread over episodes tells nothing: no interval is given.
"""

import numpy as np

from rbve.off_policy.case import OpeCase
from rbve.off_policy.estimators import Estimator
from rbve.off_policy.estimators._slope import choose

ESTIMATOR = Estimator("DRos", weights=True, values=True, interval=False, steps="one", order=18)
_LAMBDAS = (0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, np.inf)


def estimate(case: OpeCase) -> np.ndarray:
    def shrunk(lam: float) -> np.ndarray:
        weight = case.weight
        if np.isfinite(lam):
            weight = lam * weight / (weight**2 + lam)
        return case.v + weight * (case.reward - case.q_taken)

    return choose(_LAMBDAS, shrunk)
