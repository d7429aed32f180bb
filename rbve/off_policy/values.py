"""A policy's own values against the returns of the log: over-estimation without an environment."""

from dataclasses import dataclass

import numpy as np

from rbve import ops
from rbve.off_policy.log import DecisionLog
from rbve.off_policy.targets import Deployment, legal_actions, of_scores
from rbve.policy import Policy
from rbve.policy.outputs import outputs_on

_BINS = 10


@dataclass(frozen=True)
class ValueCheck:
    """Of episodes that ran to their end, G the discounted return that followed."""

    claimed: float  # mean value of the policy's own choices, as it acts
    logged: float  # mean Q of the logged action
    returned: float  # mean G
    error: float  # root mean square of Q(s, a_logged) − G
    gap: float  # mean of best minus second best value
    bins: tuple[tuple[float, float, int], ...]  # mean Q(s, a_logged), mean G, decisions

    @property
    def overestimation(self) -> float:
        """What the policy claims beyond what the behaviour received; some of it may be true."""
        return self.claimed - self.returned


def check_values(policy: Policy, log: DecisionLog, acting: Deployment) -> ValueCheck:
    """Q of the logged actions estimates the policy's return after them, so for a policy near the
    log it should lie near G; far above is over-estimation."""
    outputs = outputs_on(policy, log.dataset)
    whole = ~log.cut[log.episode]
    g = log.sum_to_go(log.reward)[whole]
    q = outputs.q[log.rows].astype(np.float64)[whole]
    scores = outputs.scores[log.rows][whole]
    if not len(g):
        nan = float("nan")
        return ValueCheck(nan, nan, nan, nan, nan, ())
    index = np.arange(len(q))
    legal = legal_actions(log.dataset)[log.rows][whole]
    chosen = of_scores(scores, legal, acting)
    own = (chosen * np.where(chosen > 0, q, 0.0)).sum(axis=1)  # illegal ones may be −inf
    taken = q[index, log.action[whole]]
    gap = np.asarray(ops.action_gap(q, None if log.legal is None else log.legal[whole]))
    return ValueCheck(
        claimed=float(own.mean()),
        logged=float(taken.mean()),
        returned=float(g.mean()),
        error=float(np.sqrt(((taken - g) ** 2).mean())),
        gap=float(gap.mean()),
        bins=_binned(taken, g),
    )


def _binned(q: np.ndarray, g: np.ndarray) -> tuple[tuple[float, float, int], ...]:
    """Tenths of the decisions by Q."""
    parts = np.array_split(np.argsort(q, kind="stable"), min(_BINS, len(q)))
    return tuple((float(q[part].mean()), float(g[part].mean()), len(part)) for part in parts)
