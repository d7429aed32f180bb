"""Actions drawn uniformly among the legal ones: policy="uniform"."""

from rbve.behaviours.record import Asked
from rbve.behaviours.rollouts import FixedPolicy
from rbve.evaluation.actors import UniformActor

ORDER, LEARNS = 50, False


def claim(asked: Asked) -> FixedPolicy | None:
    """By its name, or where nobody is named."""
    uniform = asked.policy in (None, "uniform")
    return FixedPolicy("uniform", UniformActor()) if uniform else None
