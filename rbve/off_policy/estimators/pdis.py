"""Per-decision importance sampling.

    V̂ = 1/E Σ_i Σ_t γ^t w_it r_it,    w_it = Π_{k ≤ t} π(a_k | s_k) / μ(a_k | s_k)

A reward is weighted by the decisions before it alone: unbiased as importance sampling of whole
episodes is, with less variance.
"""

import numpy as np

from rbve.off_policy.case import OpeCase
from rbve.off_policy.estimators import Estimator

ESTIMATOR = Estimator("PDIS", weights=True, unheld=True, steps="several", order=45)


def estimate(case: OpeCase) -> np.ndarray:
    return case.log.sum(case.log.discount * case.weight * case.reward)
