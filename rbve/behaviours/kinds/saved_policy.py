"""A trained policy, as an object or its file: greedy but for a share ε of random actions."""

from pathlib import Path

from rbve.behaviours.record import Asked
from rbve.behaviours.rollouts import FixedPolicy
from rbve.policy import Policy

ORDER, LEARNS = 80, False


def claim(asked: Asked) -> FixedPolicy | None:
    """A Policy, or any path that is no name of another behaviour."""
    policy = asked.policy
    if isinstance(policy, str | Path):
        policy = Policy.load(policy, asked.algorithm)
    return FixedPolicy("policy", policy) if isinstance(policy, Policy) else None
