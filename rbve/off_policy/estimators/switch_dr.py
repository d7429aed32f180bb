"""Switch-DR (Wang et al., 2017) on one-step logs, its threshold chosen by SLOPE.

    V̂ = 1/N Σ_i ( V̂(s_i) + 1[w_i ≤ τ] w_i (r_i − Q̂(s_i, a_i)) )

Where a weight is large, the fitted value alone counts. SLOPE takes on bias, of which the spread
over episodes tells nothing: no interval is given.
"""

import numpy as np

from rbve.off_policy.case import OpeCase
from rbve.off_policy.estimators import Estimator
from rbve.off_policy.estimators._slope import choose

ESTIMATOR = Estimator("Switch-DR", weights=True, values=True, interval=False, steps="one", order=17)
_THRESHOLDS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, np.inf)


def estimate(case: OpeCase) -> np.ndarray:
    def switched(threshold: float) -> np.ndarray:
        weight = np.where(case.weight <= threshold, case.weight, 0.0)
        return case.v + weight * (case.reward - case.q_taken)

    return choose(_THRESHOLDS, switched)
