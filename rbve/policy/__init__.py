"""A trained policy: act, look at its values, save and load."""

from rbve.policy.network import act_function, forward, recall
from rbve.policy.policy import Policy
from rbve.runtime.session import Session

__all__ = ["Policy", "Session", "act_function", "forward", "recall"]
