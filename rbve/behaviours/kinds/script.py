"""A player written for the game (rbve/behaviours/scripts), with ε: policy="script"."""

from dataclasses import dataclass

from rbve.behaviours import scripts
from rbve.behaviours.record import Asked, Opened, RecordingPlan
from rbve.behaviours.rollouts import FixedPolicy
from rbve.evaluation.actors import ScriptActor

ORDER, LEARNS = 60, False


@dataclass(frozen=True)
class _Script:
    """The script of the environment that is recorded."""

    def opened(self, plan: RecordingPlan) -> Opened:
        return FixedPolicy("script", ScriptActor(scripts.load(plan.env))).opened(plan)


def claim(asked: Asked) -> _Script | None:
    """By its name."""
    return _Script() if asked.policy == "script" else None
