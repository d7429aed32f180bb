"""The behaviour policy: the probabilities that made the log, logged or estimated.

Estimated ones are cloning's. What they are like on states they have not seen (support, calibration)
comes from fits that are cross-fitted over episodes and divided by a temperature. Weights take one
fit to all episodes that judge: where chance made an action more frequent than it should be, that
fit says so, and its weights undo it (Hirano et al., 2003; Hanna et al., 2019), while cross-fitted
errors multiply along an episode. A fit that has learned its own episodes by heart would undo
everything: the number of updates is the one with the best cross-fitted log loss of three, and the
fit is used only while its own log loss stays near that. Missing propensities are never taken from
the policy that is judged.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from rbve.off_policy.fits import FitPlan, fit_cloning
from rbve.off_policy.log import DecisionLog
from rbve.training.run import Progress

Source = Literal["logged", "estimated"]
_BINS = 10
_FOLDS = 5  # at least, of cloning: each fit sees most of the episodes
_PARTS = (16, 4, 1)  # of the updates of a plan: small logs are learned by heart in all of them
MOST_OPTIMISM = 0.2  # of the log loss, which a fit may lose on the episodes it is fitted to
_LEAST = 1e-6  # probability of an action that was taken


@dataclass(frozen=True)
class Calibration:
    """How far estimated probabilities agree with what was done, on episodes not fitted."""

    log_loss: float  # nats a decision
    uniform_log_loss: float  # of all legal actions alike
    error: float  # of a decision's probabilities, as much as lies on wrong actions, over bins
    temperature: float
    updates: int  # of each fit
    optimism: float  # share of the log loss that a fit loses on the episodes it is fitted to
    bins: tuple[tuple[float, float, int], ...]  # predicted, observed, pairs of state and action


@dataclass(frozen=True)
class BehaviourPolicy:
    source: Source
    taken: np.ndarray  # (N,) μ(a | s) of the logged action
    every: np.ndarray  # (N, A) μ̂(· | s), estimated and cross-fitted
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
    check_source(log, source)
    plans = _plans(plan, log.episodes)
    tried = [_cross_fitted(log, each, on_progress) for each in plans]
    best = min(tried, key=lambda each: each.log_loss)
    temperature = best.temperature
    every, final = (
        _softmax(best.logits[rows] / temperature) for rows in (log.rows, log.final_rows)
    )
    logits = fit_cloning(log, best.plan, on_progress, crossed=False)
    own = _of_taken(log, _softmax(logits[log.rows]))
    optimism = 1 - float(np.log(own).mean() / min(np.log(_of_taken(log, every)).mean(), -_LEAST))
    calibration = _calibration(log, every, best, optimism)
    if logged is not None and source != "estimated":
        return BehaviourPolicy("logged", logged, every, calibration, final)
    taken = own if optimism <= MOST_OPTIMISM else _of_taken(log, every)
    return BehaviourPolicy("estimated", taken, every, calibration, final)


class _Crossed(NamedTuple):
    plan: FitPlan
    logits: np.ndarray  # (R, A)
    temperature: float
    log_loss: float


def _plans(plan: FitPlan, episodes: int) -> list[FitPlan]:
    folds = max(plan.folds, min(_FOLDS, episodes))
    steps = sorted({max(1, plan.steps // part) for part in _PARTS})
    return [replace(plan, steps=each, folds=folds) for each in steps]


def _cross_fitted(
    log: DecisionLog, plan: FitPlan, on_progress: Callable[[Progress], None]
) -> _Crossed:
    logits = fit_cloning(log, plan, on_progress)
    temperature = best_temperature(log.action, logits[log.rows])
    return _Crossed(plan, logits, temperature, _log_loss(log.action, logits[log.rows], temperature))


def updates_of_cloning(plan: FitPlan) -> int:
    """How many updates `behaviour_of` takes, at most."""
    return sum(each.steps * each.folds for each in _plans(plan, _FOLDS)) + plan.steps


def check_source(log: DecisionLog, source: Source | None) -> None:
    """ValueError where propensities that are to be used are not there, or are none."""
    if source == "logged" and log.propensity is None:
        raise ValueError(
            "the log holds no propensities; name their column when converting (--propensity), or "
            "leave --propensities out to estimate them"
        )
    if source != "estimated":
        check_propensities(log)


def check_propensities(log: DecisionLog) -> None:
    """ValueError where a logged propensity is no probability of an action that was taken."""
    if log.propensity is None:
        return
    bad = ~((log.propensity > 0) & (log.propensity <= 1))
    if bad.any():
        where = int(np.argmax(bad))
        raise ValueError(
            f"{log.place(where)}: a propensity of "
            f"{log.propensity[where]:g}; the probability of an action that was taken lies in "
            f"(0, 1] ({int(bad.sum()):,} such); mend the log, or estimate them with --propensities "
            "estimated"
        )


def _softmax(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _of_taken(log: DecisionLog, every: np.ndarray) -> np.ndarray:
    """(N,) of logged actions."""
    return np.maximum(every[np.arange(len(log.action)), log.action], _LEAST)


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


def _calibration(
    log: DecisionLog, every: np.ndarray, best: _Crossed, optimism: float
) -> Calibration:
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
    return Calibration(
        log_loss=float(-np.log(_of_taken(log, every)).mean()),
        uniform_log_loss=float(np.log(legal.sum(axis=1)).mean()),
        # Halved, since what one action has too much others have too little; with two actions it is
        # the usual expected calibration error, and with many it does not vanish.
        error=float((count * np.abs(mean - share)).sum() / (2 * len(every))),
        temperature=best.temperature,
        updates=best.plan.steps,
        optimism=optimism,
        bins=bins,
    )
