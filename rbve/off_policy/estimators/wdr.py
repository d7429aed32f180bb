"""Self-normalised doubly robust estimation (Thomas and Brunskill, 2016), cross-fitted.

    V̂ = Σ_t γ^t ( Σ_i w_it (r_it − Q̂(s_it, a_it)) / Σ_i w_it + Σ_i w_i,t−1 V̂(s_it) / Σ_i w_i,t−1 )

Biased by O(1/E), with less variance than DR where few weights are large. On one-step logs this is
SNDR.
"""

import numpy as np

from rbve.off_policy.case import OpeCase
from rbve.off_policy.estimators import Estimator

ESTIMATOR = Estimator("WDR", "SNDR", weights=True, values=True, order=15)


def estimate(case: OpeCase) -> np.ndarray:
    log, ended = case.log, case.log.last(case.weight)
    residual = log.self_normalised(case.weight, case.reward - case.q_taken, ended)
    # w_{t−1} lags: once an episode is over, it too is the weight of all its decisions.
    return residual + log.self_normalised(log.before(case.weight), case.v, ended)
