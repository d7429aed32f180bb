"""A caller's function of the observation, as rbve.evaluate takes it, with ε."""

from rbve.behaviours.record import Asked
from rbve.behaviours.rollouts import FixedPolicy

ORDER, LEARNS = 70, False


def claim(asked: Asked) -> FixedPolicy | None:
    """Whatever can be called; its propensities are not known."""
    return FixedPolicy("function", asked.policy) if callable(asked.policy) else None
