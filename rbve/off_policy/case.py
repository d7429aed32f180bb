"""One policy on one log: all that an estimator reads."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rbve.off_policy.log import DecisionLog


@dataclass(frozen=True)
class OpeCase:
    log: DecisionLog
    policy: np.ndarray  # (N, A) π(· | s)
    behaviour: np.ndarray  # (N,) μ(a | s) of the logged action
    q: np.ndarray | None = None  # (N, A) Q̂ of the policy, fitted to other episodes
    v_cut: np.ndarray | None = None  # (E,) V̂ of the final observation, where an episode was cut

    @cached_property
    def reward(self) -> np.ndarray:
        """(N,) with γ V̂ in the last decision of an episode that was cut."""
        if self.v_cut is None or not self.log.cut.any():
            return self.log.reward
        reward = self.log.reward.copy()
        last = self.log.offsets[1:][self.log.cut] - 1
        reward[last] += self.log.gamma * self.v_cut[self.log.cut]
        return reward

    @cached_property
    def ratio(self) -> np.ndarray:
        """(N,) π(a | s) / μ(a | s) of the logged action."""
        return self.policy[np.arange(len(self.log.action)), self.log.action] / self.behaviour

    @cached_property
    def weight(self) -> np.ndarray:
        """(N,) ratios up to and with each decision, multiplied."""
        return self.log.cumulative_product(self.ratio)

    @cached_property
    def returns(self) -> np.ndarray:
        """(E,) discounted return of each episode."""
        return self.log.sum(self.log.discount * self.reward)

    @cached_property
    def q_taken(self) -> np.ndarray:
        """(N,) Q̂ of the logged action."""
        return self.fitted[np.arange(len(self.log.action)), self.log.action]

    @cached_property
    def v(self) -> np.ndarray:
        """(N,) V̂(s) = Σ_a π(a | s) Q̂(s, a)."""
        return (self.policy * self.fitted).sum(axis=1)

    @property
    def fitted(self) -> np.ndarray:
        if self.q is None:
            raise ValueError("this estimator needs fitted values")
        return self.q

    def with_returns_of_one(self) -> "OpeCase":
        """The same decisions with rewards that give every episode the return 1, which is then the
        value of every policy: 1 − γ in each decision, and 1 in the last."""
        log = self.log
        reward = np.zeros(len(log.dataset.action))
        reward[log.rows] = 1 - log.gamma
        reward[log.final_rows - 1] = 1.0
        return replace(
            self, log=replace(log, dataset=replace(log.dataset, reward=reward)), v_cut=None
        )
