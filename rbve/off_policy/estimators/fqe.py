"""Fitted Q evaluation, the direct method.

    V̂ = 1/E Σ_i Σ_a π(a | s_i0) Q̂(s_i0, a)

Q̂ solves Q(s, a) = E[r + γ Σ_a' π(a' | s') Q(s', a')] by regression on other episodes. It has
little variance and whatever bias the fit has, of which the spread over episodes tells nothing: no
interval is given. On one-step logs this is the direct method (DM).
"""

import numpy as np

from rbve.off_policy.case import OpeCase
from rbve.off_policy.estimators import Estimator

ESTIMATOR = Estimator("FQE", "DM", values=True, interval=False, order=30)


def estimate(case: OpeCase) -> np.ndarray:
    return case.log.first(case.v)
