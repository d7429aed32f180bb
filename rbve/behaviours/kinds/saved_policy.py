"""A trained policy, as an object or its file, with ε."""

from dataclasses import dataclass
from pathlib import Path

from rbve.behaviours.record import Asked, Opened, RecordingPlan
from rbve.behaviours.rollouts import policy_source
from rbve.policy import Policy

ORDER, LEARNS = 80, False


@dataclass(frozen=True)
class _SavedPolicy:
    """Greedy but for a share ε of random actions."""

    policy: Policy

    def opened(self, plan: RecordingPlan) -> Opened:
        return policy_source(plan, "policy", self.policy)


def claim(asked: Asked) -> _SavedPolicy | None:
    """A Policy, or any path that is no name of another behaviour."""
    if isinstance(asked.policy, str | Path):
        return _SavedPolicy(Policy.load(asked.policy, asked.algorithm))
    return _SavedPolicy(asked.policy) if isinstance(asked.policy, Policy) else None
