"""How well a number ranks policies whose true values are known."""

import numpy as np


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's; 0 where either is constant. Equal values share their mean rank."""
    ranks = [_ranks(np.asarray(each, float)) for each in (one, other)]
    if any(np.ptp(each) == 0 for each in ranks):
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def regret(ranked_by: np.ndarray, truth: np.ndarray) -> float:
    """Of the policy put first, with true values scaled to [0, 1] over the policies (DOPE); the mean
    over those that tie for the first place."""
    scaled = (truth - truth.min()) / np.ptp(truth)
    first = ranked_by == np.max(ranked_by)
    return float(1 - scaled[first].mean())


def _ranks(values: np.ndarray) -> np.ndarray:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]
