"""Self-normalised importance sampling of whole episodes.

    V̂ = Σ_i w_i G_i / Σ_i w_i,    w_i = Π_t π(a_t | s_t) / μ(a_t | s_t)

Biased by O(1/E), never outside the returns seen. On one-step logs this is SNIPW.
"""

import numpy as np

from rbve.off_policy.case import OpeCase
from rbve.off_policy.estimators import Estimator

ESTIMATOR = Estimator("WIS", "SNIPW", weights=True, order=20)


def estimate(case: OpeCase) -> np.ndarray:
    weight = case.log.last(case.weight)
    mean = weight.mean()
    if mean == 0:  # no episode is one that the policy could have made
        return np.full(len(weight), np.nan)
    value = (weight * case.returns).mean() / mean
    return value + weight * (case.returns - value) / mean
