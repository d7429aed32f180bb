"""A caller's function of the observation, as rbve.evaluate takes it, with ε."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from rbve.behaviours.choose import Asked
from rbve.behaviours.record import RecordingPlan, Source
from rbve.behaviours.rollouts import policy_source

ORDER, LEARNS = 70, False


def claim(asked: Asked) -> CallerFunction | None:
    """Whatever can be called."""
    return CallerFunction(asked.policy) if callable(asked.policy) else None


@dataclass(frozen=True)
class CallerFunction:
    """Its propensities are not known."""

    function: Callable[..., Any]

    def opened(self, plan: RecordingPlan) -> AbstractContextManager[Source]:
        """At work, outside JAX."""
        return policy_source(plan, "function", self.function)
