"""Self-normalised per-decision importance sampling.

    V̂ = Σ_t γ^t Σ_i w_it r_it / Σ_i w_it,    w_it = Π_{k ≤ t} π(a_k | s_k) / μ(a_k | s_k)

An episode that has ended counts on in the sums of weights with reward 0.
"""

import numpy as np

from rbve.off_policy.case import OpeCase
from rbve.off_policy.estimators import Estimator

ESTIMATOR = Estimator("WPDIS", weights=True, unheld=True, steps="several", order=25)


def estimate(case: OpeCase) -> np.ndarray:
    return case.log.self_normalised(case.weight, case.reward, case.log.last(case.weight))
