"""Log loss of cloning on held-out episodes: mean of −log π(a | s) of logged actions, in nats."""

import numpy as np

from rbve.evaluation.metric import HeldOut, Metric, mean

HELD_OUT = True
METRIC = Metric(
    "heldout_log_loss", "log loss", "log loss", "lower", cloning=True, nonnegative=True,
    order=84,
)  # fmt: skip


def evaluate(case: HeldOut) -> tuple[float, int]:
    shifted = case.scores - case.scores.max(axis=1, keepdims=True)
    normaliser = np.log(np.exp(shifted).sum(axis=1))
    return mean(normaliser - case.of(shifted, case.action))
