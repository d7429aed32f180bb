"""SLOPE (Su et al., 2020): of estimates with more and more bias and less variance, which one.

The one with the narrowest interval that still meets the intervals of all wider ones:

    î = max { i : |V̂_i − V̂_j| ≤ c_i + (√6 − 1) c_j for all j < i },    widths c falling in i
"""

from collections.abc import Callable, Sequence

import numpy as np

from rbve.off_policy.intervals import student


def choose(thresholds: Sequence[float], estimate: Callable[[float], np.ndarray]) -> np.ndarray:
    """Influence values at the threshold that SLOPE chooses."""
    candidates = [estimate(threshold) for threshold in thresholds]
    intervals = [student(values) for values in candidates]
    width = [(high - low) / 2 for low, high in intervals]
    order = sorted(range(len(width)), key=lambda k: -width[k])
    means = [candidates[k].mean() for k in order]
    widths = [width[k] for k in order]
    chosen = 0
    for i in range(1, len(order)):
        near = (abs(means[i] - means[j]) <= widths[i] + (6**0.5 - 1) * widths[j] for j in range(i))
        if not all(near):
            break
        chosen = i
    return candidates[order[chosen]]
