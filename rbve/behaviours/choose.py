"""Which behaviour a user asks for: the one dispatcher over the files in kinds/."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from rbve import registry
from rbve.behaviours import kinds
from rbve.behaviours.record import Behaviour, RecordingPlan
from rbve.schema import INT32


class Asked(NamedTuple):
    """Who is to act, as rbve.record takes it."""

    policy: Any = "online"
    preset: str | None = None
    algorithm: str | Path | None = None  # file of a saved policy's algorithm


def all_kinds() -> list[ModuleType]:
    """The files in kinds/, in the order in which they are asked."""
    names = {name for folder in kinds.__path__ for name in registry.names(Path(folder))}
    found = [importlib.import_module(f"{kinds.__name__}.{name}") for name in names]
    return sorted(found, key=lambda kind: (kind.ORDER, kind.__name__))


def choose(asked: Asked, plan: RecordingPlan) -> Behaviour:
    """The behaviour that was asked for, if the plan suits it.

    Raises:
        ValueError: It is unknown, or does not go with the plan.
    """
    policy, preset = asked.policy, asked.preset
    presets = {name: own for kind in all_kinds() for name, own in _presets(kind).items()}
    if plan.env_name is None and (preset or policy in ("online", "r2d2", "script")):
        raise ValueError(
            f"{policy!r} plays environments by name, and this is an object; give policy='uniform', "
            "a Policy or a function"
        )
    if not 0 <= plan.seed <= INT32:
        raise ValueError(f"seed must lie in [0, {INT32}]; got {plan.seed}")
    if preset not in (None, *presets):
        names = " or ".join(sorted(presets))
        raise ValueError(f"preset is {names}, an online agent; got {preset!r}")
    if preset and policy not in ("online", presets[preset]):
        raise ValueError(f"preset {preset!r} is itself the agent that plays; leave policy out")
    for kind in all_kinds():
        if (behaviour := kind.claim(asked)) is not None:
            _check(kind, policy, plan)
            return behaviour
    raise ValueError(
        "policy is 'online', 'r2d2', 'uniform', 'script', a Policy, its file or a function; got "
        f"{policy!r}"
    )


def _presets(kind: ModuleType) -> dict[str, str]:
    return getattr(kind, "PRESETS", {})


def _check(kind: ModuleType, policy: Any, plan: RecordingPlan) -> None:
    if plan.epsilon and (kind.LEARNS or policy in ("uniform", None)):
        raise ValueError("epsilon belongs to a saved policy or a script; name it with policy")
    if plan.steps is not None and not kind.LEARNS:
        raise ValueError("steps are those of an online agent; of another policy give episodes")
    if plan.steps is not None and plan.episodes is not None:
        raise ValueError(f"give one of episodes and steps; got {plan.episodes} and {plan.steps}")
    if plan.steps is not None and plan.steps < 1:
        raise ValueError(f"steps must be at least 1; got {plan.steps}")
