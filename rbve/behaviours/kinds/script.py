"""A player written for the game (rbve/behaviours/scripts), with ε: policy="script"."""

from dataclasses import dataclass

from rbve.behaviours import scripts
from rbve.behaviours.record import Asked, Opened, RecordingPlan
from rbve.behaviours.rollouts import policy_source
from rbve.evaluation.actors import ScriptActor

ORDER, LEARNS = 60, False


@dataclass(frozen=True)
class Scripted:
    """The script of the environment that is recorded."""

    def opened(self, plan: RecordingPlan) -> Opened:
        return policy_source(plan, "script", ScriptActor(scripts.load(plan.env)))


def claim(asked: Asked) -> Scripted | None:
    """By its name."""
    return Scripted() if asked.policy == "script" else None
