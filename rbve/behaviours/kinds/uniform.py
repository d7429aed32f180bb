"""Actions drawn uniformly among the legal ones: policy="uniform"."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from rbve.behaviours.choose import Asked
from rbve.behaviours.record import RecordingPlan, Source
from rbve.behaviours.rollouts import policy_source
from rbve.evaluation.actors import UniformActor

ORDER, LEARNS = 50, False


def claim(asked: Asked) -> Uniform | None:
    """By its name, or where nobody is named."""
    return Uniform() if asked.policy in (None, "uniform") else None


@dataclass(frozen=True)
class Uniform:
    """Chance alone."""

    def opened(self, plan: RecordingPlan) -> AbstractContextManager[Source]:
        """At work."""
        return policy_source(plan, "uniform", UniformActor())
