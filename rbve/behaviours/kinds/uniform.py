"""Actions drawn uniformly among the legal ones: policy="uniform"."""

from rbve.behaviours.record import Asked
from rbve.behaviours.rollouts import FixedPolicy
from rbve.evaluation.actors import UniformActor

ORDER, LEARNS = 50, False
_UNIFORM = FixedPolicy("uniform", UniformActor())


def claim(asked: Asked) -> FixedPolicy | None:
    """By its name, or where nobody is named."""
    return _UNIFORM if asked.policy in (None, "uniform") else None
