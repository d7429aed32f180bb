"""A caller's function of the observation, as rbve.evaluate takes it, with ε."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rbve.behaviours.record import Asked, Opened, RecordingPlan
from rbve.behaviours.rollouts import policy_source

ORDER, LEARNS = 70, False


@dataclass(frozen=True)
class _CallerFunction:
    """Its propensities are not known."""

    function: Callable[..., Any]

    def opened(self, plan: RecordingPlan) -> Opened:
        return policy_source(plan, "function", self.function)


def claim(asked: Asked) -> _CallerFunction | None:
    """Whatever can be called."""
    return _CallerFunction(asked.policy) if callable(asked.policy) else None
