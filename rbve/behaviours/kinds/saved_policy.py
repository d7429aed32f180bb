"""A trained policy, as an object or its file, with ε."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rbve.behaviours.choose import Asked
from rbve.behaviours.record import RecordingPlan, Source
from rbve.behaviours.rollouts import policy_source
from rbve.policy import Policy

ORDER, LEARNS = 80, False


def claim(asked: Asked) -> SavedPolicy | None:
    """A Policy, or any path that is no name of another behaviour."""
    if isinstance(asked.policy, Policy):
        return SavedPolicy(asked.policy)
    if isinstance(asked.policy, str | Path):
        return SavedPolicy(Policy.load(asked.policy, asked.algorithm))
    return None


@dataclass(frozen=True)
class SavedPolicy:
    """Greedy but for a share ε of random actions."""

    policy: Policy

    def opened(self, plan: RecordingPlan) -> AbstractContextManager[Source]:
        """At work; ValueError where it does not fit the environment."""
        return policy_source(plan, "policy", self.policy)
