"""A player written for the game (rbve/behaviours/scripts), with ε: policy="script"."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from rbve.behaviours import scripts
from rbve.behaviours.choose import Asked
from rbve.behaviours.record import RecordingPlan, Source
from rbve.behaviours.rollouts import policy_source
from rbve.evaluation.actors import ScriptActor

ORDER, LEARNS = 60, False


def claim(asked: Asked) -> Scripted | None:
    """By its name."""
    return Scripted() if asked.policy == "script" else None


@dataclass(frozen=True)
class Scripted:
    """The script of the environment that is recorded."""

    def opened(self, plan: RecordingPlan) -> AbstractContextManager[Source]:
        """At work; ValueError where no script plays the game."""
        return policy_source(plan, "script", ScriptActor(scripts.load(plan.env)))
