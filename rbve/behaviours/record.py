"""Recording what a behaviour does into native stores.

A behaviour is one file in kinds/, among which `choose` finds the one asked for. Opened by a
RecordingPlan it gives a Source of episodes, and `record` writes them: each complete episode is on
disk within seconds of its end.
"""

import importlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from rbve import registry, stopping
from rbve.behaviours import kinds
from rbve.data.dataset import NO_ACTION, Episode, sample_episodes
from rbve.data.formats.native import StoreWriter, recording
from rbve.schema import INT32

SECONDS_PER_FLUSH = 2.0  # how much work a kill may cost, at most a few of these
EXPERT = "expert.safetensors"

# Episodes an online agent records by default: the paper's numbers.
_PAPER_EPISODES = {"cartpole": 1000, "catch": 2000, "mountain_car": 500}


def default_episodes(env_name: str) -> int:
    """Of a recording where nobody says how many."""
    return _PAPER_EPISODES.get(env_name.partition(":")[0], 1000)


class Progress(NamedTuple):
    """Told whenever episodes were written."""

    episodes: int  # recorded so far
    last_return: float
    share: float  # of the recording that is done


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class RecordingPlan:
    """What is recorded, whoever acts."""

    env: Any  # a name; of behaviours that do not learn, also an environment
    out: Path
    episodes: int | None = None  # None = by steps, where the behaviour has such, or its default
    steps: int | None = None  # of the environment, for agents that learn
    epsilon: float = 0.0  # share of random actions of a policy, script or function
    noise: float = 0.0  # probability that the environment executes a random action
    seed: int = 0
    keep: float = 1.0  # share of the episodes
    overwrite: bool = False
    legal: str | None = None  # as rbve.evaluate takes it
    reference: Mapping[str, float] | None = None  # returns that scores are normalised by

    @property
    def env_name(self) -> str | None:
        """An object has none: another of its name need not be like it."""
        return self.env if isinstance(self.env, str) else None

    @property
    def episodes_or_default(self) -> int:
        """ValueError where there are none."""
        count = default_episodes(self.env_name or "") if self.episodes is None else self.episodes
        if count < 1:
            raise ValueError(f"episodes must be at least 1; got {count}")
        return count

    def length(self, steps: int) -> tuple[int | None, int]:
        """How many episodes an agent records, None = by `steps`, and the number of either."""
        if self.episodes is not None or not steps:
            return self.episodes_or_default, self.episodes_or_default
        if self.keep != 1:
            raise ValueError(
                "a share of the episodes can be kept where their number is given: episodes"
            )
        return None, steps


class Source(NamedTuple):
    """A behaviour at work in an open environment."""

    actions: Sequence[str]
    provenance: dict[str, Any]
    episodes: int | None  # how many there will be; None = not known
    groups: Iterable[tuple[Sequence[Episode], float]]  # episodes, and the share done with them
    finish: Callable[[StoreWriter, Sequence[float]], None] = lambda writer, returns: None
    length: str = ""  # of an agent that may come to no episode, how long it had


Opened = AbstractContextManager[Source]


class Behaviour(Protocol):
    """Who acts."""

    def opened(self, plan: RecordingPlan) -> Opened:
        """At work as the plan says; ValueError where it cannot."""


class Asked(NamedTuple):
    """Who is to act, as rbve.record takes it."""

    policy: Any = "online"
    preset: str | None = None
    algorithm: str | Path | None = None  # file of a saved policy's algorithm


def all_kinds() -> list[ModuleType]:
    """The files in kinds/, in the order in which they are asked."""
    names = {name for folder in kinds.__path__ for name in registry.names(Path(folder))}
    files = [importlib.import_module(f"{kinds.__name__}.{name}") for name in names]
    return sorted(files, key=lambda kind: (kind.ORDER, kind.__name__))


def choose(asked: Asked, plan: RecordingPlan) -> Behaviour:
    """The behaviour that was asked for, if the plan suits it.

    Raises:
        ValueError: It is unknown, or does not go with the plan.
    """
    policy, preset, files = asked.policy, asked.preset, all_kinds()
    presets: dict[str, str] = {}
    for kind in files:
        presets |= getattr(kind, "PRESETS", {})
    if plan.env_name is None and (preset or policy in ("online", "r2d2", "script", "clinicians")):
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
    behaviours = ((kind.LEARNS, kind.claim(asked)) for kind in files)
    learns, behaviour = next((each for each in behaviours if each[1] is not None), (False, None))
    if behaviour is None:
        raise ValueError(
            "policy is 'online', 'r2d2', 'uniform', 'script', 'clinicians', a Policy, its file or "
            f"a function; got {policy!r}"
        )
    if plan.epsilon and (learns or policy in ("uniform", None)):
        raise ValueError("epsilon belongs to a saved policy or a script; name it with policy")
    if plan.steps is not None and not learns:
        raise ValueError("steps are those of an online agent; of another policy give episodes")
    if plan.steps is not None and plan.episodes is not None:
        raise ValueError(f"give one of episodes and steps; got {plan.episodes} and {plan.steps}")
    if plan.steps is not None and plan.steps < 1:
        raise ValueError(f"steps must be at least 1; got {plan.steps}")
    return behaviour


def record(
    behaviour: Behaviour, plan: RecordingPlan, on_progress: OnProgress = lambda progress: None
) -> None:
    """Write the episodes of a behaviour into a new store.

    Args:
        behaviour: Who acts.
        plan: Where, how much, and into which folder.
        on_progress: Told whenever episodes were written.

    Raises:
        ValueError: The behaviour cannot act so, or the folder cannot be written.
    """
    with behaviour.opened(plan) as source:
        count = source.episodes
        kept = None if count is None else sample_episodes(count, plan.keep, plan.seed)
        returns: list[float] = []
        store = plan.out, source.actions, source.provenance, plan.overwrite, EXPERT
        with recording(*store) as writer:
            for fresh, share in source.groups:
                stopping.check()
                first = len(returns)
                writer.append([e for k, e in enumerate(fresh, first) if kept is None or kept[k]])
                returns += [float(each.reward.sum(dtype=np.float64)) for each in fresh]
                if fresh:
                    on_progress(Progress(len(returns), returns[-1], share))
            if source.length and not writer.manifest["episodes"]:
                shutil.rmtree(writer.path)  # it would be in the way of the next recording
                raise ValueError(
                    f"{plan.env}: no episode ended within {source.length}, so nothing was "
                    "recorded; give more --steps"
                )
            source.finish(writer, returns)
            writer.finish()


def cut(columns: Mapping[str, np.ndarray], start: int, length: int) -> Episode:
    """The episode of `length` decisions that begins at row `start`."""
    rows, decisions = slice(start, start + length + 1), slice(start, start + length)

    def column(name: str, last: float) -> np.ndarray:
        values = columns[name][decisions]
        return np.append(values, np.array(last, values.dtype))

    return Episode(
        obs=columns["obs"][rows],
        action=column("action", NO_ACTION),
        reward=column("reward", 0),
        terminated=bool(columns["terminated"][start + length - 1]),
        executed=column("executed", NO_ACTION),
        propensity=column("propensity", 1) if "propensity" in columns else None,
        legal=columns["legal"][rows] if "legal" in columns else None,
    )


def grouped(episodes: Iterable[tuple[Episode, float]]) -> Iterator[tuple[list[Episode], float]]:
    """Episodes, with the share done after each, in groups of a few seconds."""
    group: list[Episode] = []
    share, started = 0.0, time.monotonic()
    for episode, share in episodes:
        group.append(episode)
        if time.monotonic() - started > SECONDS_PER_FLUSH:
            yield group, share
            group, started = [], time.monotonic()
    if group:
        yield group, share


def provenance(
    plan: RecordingPlan, behaviour: str, episodes: int | None, agent: Mapping[str, Any]
) -> dict[str, Any]:
    """Of data that an agent recorded while it learned."""
    return {
        "env": plan.env,
        "behaviour": behaviour,
        "noise": plan.noise,
        "seed": plan.seed,
        "recorded_episodes": episodes,
        "keep": plan.keep,
        "agent": dict(agent),
    }
