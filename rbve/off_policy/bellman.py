"""Supervised Bellman validation (Zitovsky et al., 2023, arXiv:2302.00141): ranks Q-functions.

    y = r + γ Σ_a' π(a' | s') Q(s', a'),    B̂ = argmin_f E_train [ (y − f(s, a))² ]
    error(Q) = E_held-out [ (Q(s, a) − B̂(s, a))² ]

π is what the candidate itself does, greedy if nothing else is said. The plain Bellman error, of
Q(s, a) against y, holds the variance of y as well, which favours candidates whose values hardly
vary; a regression of y takes it away. Lower is better. It ranks and estimates nothing: a Q that
solves the Bellman equation on logged pairs may be wrong about actions that the log lacks.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rbve.off_policy.fits import FitPlan, fit_numbers
from rbve.off_policy.log import DecisionLog
from rbve.off_policy.targets import Deployment, legal_actions, of_scores
from rbve.policy import Policy
from rbve.policy.outputs import outputs_on
from rbve.training.run import Progress


@dataclass(frozen=True)
class Candidate:
    """A Q-function and what is done by it, on every row of a log."""

    q: np.ndarray  # (R, A)
    policy: np.ndarray  # (R, A) π(· | s)

    @staticmethod
    def of(policy: Policy, log: DecisionLog, acting: Deployment | None = None) -> "Candidate":
        """A trained policy, acting greedily unless `acting` says otherwise.

        Raises:
            ValueError: It has no values, or does not fit the log.
        """
        if not policy.algorithm.values:
            raise ValueError(
                f"{policy.algorithm.name} learns which action the data takes, not what it is "
                "worth, so that there is no Bellman error; leave it out"
            )
        scores, q = outputs_on(policy, log.dataset)
        chosen = of_scores(scores, legal_actions(log.dataset), acting or Deployment())
        return Candidate(q.astype(np.float64), chosen)

    def targets(self, log: DecisionLog) -> np.ndarray:
        """(N,) r + γ Σ_a' π(a' | s') Q(s', a') of each decision; of a last one r alone."""
        # What is never done does not count, even where its value is −inf.
        value = (self.policy * np.where(self.policy > 0, self.q, 0.0)).sum(axis=1)
        after = value[log.rows + 1]
        after[log.offsets[1:][~log.cut] - 1] = 0.0
        return log.reward + log.gamma * after

    def taken(self, log: DecisionLog) -> np.ndarray:
        """(N,) Q of logged pairs."""
        return self.q[log.rows, log.action]


def bellman_errors(
    log: DecisionLog,
    candidates: Mapping[str, Policy],
    plan: FitPlan,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, float]:
    """Held-out error of each policy, lower is better. Every regression has the memory, stack and
    torso of the policy, and is fitted to other episodes than it is scored on.

    Raises:
        ValueError: A policy has no values or does not fit the log, or there are fewer episodes
            than folds.
    """
    seen = {name: Candidate.of(policy, log) for name, policy in candidates.items()}
    together: dict[FitPlan, list[str]] = {}
    for name, policy in candidates.items():
        together.setdefault(plan.suited_to(policy), []).append(name)
    errors: dict[str, float] = {}
    for suited, names in together.items():
        own = {name: seen[name] for name in names}
        errors |= candidate_errors(log, own, suited, on_progress)
    return {name: errors[name] for name in candidates}


def candidate_errors(
    log: DecisionLog,
    candidates: Mapping[str, Candidate],
    plan: FitPlan,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, float]:
    """The same of Q-functions that anyone brings; infinite where values are not finite."""
    errors = dict.fromkeys(candidates, math.inf)
    targets = {name: each.targets(log) for name, each in candidates.items()}
    taken = {name: each.taken(log) for name, each in candidates.items()}
    sane = [name for name in candidates if np.isfinite(targets[name] + taken[name]).all()]
    fitted = fit_numbers(log, [targets[name] for name in sane], plan, on_progress) if sane else []
    for name, fit in zip(sane, fitted, strict=True):
        errors[name] = float(np.mean((taken[name] - fit) ** 2))
    return errors


def empirical_error(log: DecisionLog, candidate: Candidate) -> float:
    """The plain mean squared TD error, for comparison: it holds the variance of the targets."""
    return float(np.mean((candidate.taken(log) - candidate.targets(log)) ** 2))
