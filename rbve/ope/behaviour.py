"""The behaviour policy: the probabilities that made the log, logged or estimated.

Estimated ones are cloning's, cross-fitted over episodes, divided by a temperature that is set on
episodes a fit did not see. Missing propensities are never taken from the policy that is judged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rbve.ope.fits import FitPlan, fit_cloning
from rbve.ope.log import DecisionLog
from rbve.training.run import Progress

Source = Literal["logged", "estimated"]
_BINS = 10


@dataclass(frozen=True)
class Calibration:
    """How far estimated probabilities agree with what was done, on episodes not fitted."""

    log_loss: float  # nats a decision
    uniform_log_loss: float  # of all legal actions alike
    error: float  # expected calibration error: mean |predicted − observed| over bins
    temperature: float
    bins: tuple[tuple[float, float, int], ...]  # predicted, observed, pairs of state and action


@dataclass(frozen=True)
class BehaviourPolicy:
    source: Source
    taken: np.ndarray  # (N,) μ(a | s) of the logged action
    every: np.ndarray  # (N, A) μ̂(· | s), estimated
    calibration: Calibration
    final: np.ndarray | None = None  # (E, A) μ̂ of final observations; None = not known


def behaviour_of(
    log: DecisionLog,
    plan: FitPlan,
    source: Source | None = None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> BehaviourPolicy:
    """Logged propensities if there are any, else estimated ones (or as `source` says).

    Raises:
        ValueError: Propensities are asked for and not there, or some is no probability.
    """
    logged = log.propensity
    if source == "logged" and logged is None:
        raise ValueError(
            "the log holds no propensities; name their column when converting (--propensity), or "
            "leave --propensities out to estimate them"
        )
    if logged is not None and source != "estimated":
        check_propensities(log)
    logits = fit_cloning(log, plan, on_progress)
    temperature = best_temperature(log.action, logits[log.rows])
    every, final = (_softmax(logits[rows] / temperature) for rows in (log.rows, log.final_rows))
    calibration = _calibration(log, every, temperature)
    if logged is not None and source != "estimated":
        return BehaviourPolicy("logged", logged, every, calibration, final)
    taken = every[np.arange(len(log.action)), log.action]
    return BehaviourPolicy("estimated", np.maximum(taken, 1e-6), every, calibration, final)


def check_propensities(log: DecisionLog) -> None:
    """ValueError where a logged propensity is no probability of an action that was taken."""
    if log.propensity is None:
        return
    bad = ~((log.propensity > 0) & (log.propensity <= 1))
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(
            f"episode {log.episode[where]}, decision {log.step[where]}: a propensity of "
            f"{log.propensity[where]:g}; the probability of an action that was taken lies in "
            f"(0, 1] ({int(bad.sum()):,} such); mend the log, or estimate them with --propensities "
            "estimated"
        )


def _softmax(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _log_loss(action: np.ndarray, logits: np.ndarray, temperature: float) -> float:
    scaled = (logits - logits.max(axis=1, keepdims=True)) / temperature
    normaliser = np.log(np.exp(scaled).sum(axis=1))
    return float((normaliser - scaled[np.arange(len(action)), action]).mean())


def best_temperature(action: np.ndarray, logits: np.ndarray) -> float:
    """What logits (N, A) are best divided by to become the probabilities of `action` (N,). By
    golden section on log T, of which the log loss is convex enough."""
    low, high = np.log(0.25), np.log(8.0)
    golden = (5**0.5 - 1) / 2
    for _ in range(25):
        left, right = high - golden * (high - low), low + golden * (high - low)
        losses = [_log_loss(action, logits, float(np.exp(each))) for each in (left, right)]
        low, high = (low, right) if losses[0] < losses[1] else (left, high)
    return float(np.exp((low + high) / 2))


def _calibration(log: DecisionLog, every: np.ndarray, temperature: float) -> Calibration:
    legal = np.ones_like(every, bool) if log.legal is None else log.legal
    taken = np.zeros_like(every, bool)
    taken[np.arange(len(log.action)), log.action] = True
    predicted, happened = every[legal], taken[legal]
    place = np.minimum((predicted * _BINS).astype(int), _BINS - 1)
    count = np.bincount(place, minlength=_BINS)
    some = np.maximum(count, 1)
    mean = np.bincount(place, predicted, _BINS) / some
    share = np.bincount(place, happened, _BINS) / some
    bins = tuple((float(m), float(s), int(c)) for m, s, c in zip(mean, share, count, strict=True))
    mine = every[np.arange(len(log.action)), log.action]
    return Calibration(
        log_loss=float(-np.log(np.maximum(mine, 1e-12)).mean()),
        uniform_log_loss=float(np.log(legal.sum(axis=1)).mean()),
        error=float((count * np.abs(mean - share)).sum() / max(count.sum(), 1)),
        temperature=temperature,
        bins=bins,
    )
