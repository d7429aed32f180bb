"""Actions drawn uniformly among the legal ones: policy="uniform"."""

from dataclasses import dataclass

from rbve.behaviours.record import Asked, Opened, RecordingPlan
from rbve.behaviours.rollouts import policy_source
from rbve.evaluation.actors import UniformActor

ORDER, LEARNS = 50, False


@dataclass(frozen=True)
class Uniform:
    """Chance alone."""

    def opened(self, plan: RecordingPlan) -> Opened:
        return policy_source(plan, "uniform", UniformActor())


def claim(asked: Asked) -> Uniform | None:
    """By its name, or where nobody is named."""
    return Uniform() if asked.policy in (None, "uniform") else None
