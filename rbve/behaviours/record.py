"""Recording what a behaviour does into native stores.

A behaviour is one file in kinds/; opened by a RecordingPlan it gives a Source of episodes, and
`record` writes them: each complete episode is on disk within seconds of its end.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from rbve import stopping
from rbve.data.dataset import NO_ACTION, Episode, sample_episodes
from rbve.data.formats.native import StoreWriter, recording

SECONDS_PER_FLUSH = 2.0  # how much work a kill may cost, at most a few of these
EXPERT = "expert.safetensors"

# Episodes an online agent records by default: the paper's numbers.
PAPER_EPISODES = {"cartpole": 1000, "catch": 2000, "mountain_car": 500}


def default_episodes(env_name: str) -> int:
    """Of a recording where nobody says how many."""
    return PAPER_EPISODES.get(env_name.partition(":")[0], 1000)


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


class Behaviour(Protocol):
    """Who acts."""

    def opened(self, plan: RecordingPlan) -> AbstractContextManager[Source]:
        """At work as the plan says; ValueError where it cannot."""


def record(
    behaviour: Behaviour,
    plan: RecordingPlan,
    on_progress: OnProgress = lambda progress: None,
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
        with recording(
            plan.out, source.actions, source.provenance, plan.overwrite, EXPERT
        ) as writer:
            for fresh, share in source.groups:
                stopping.check()
                first = len(returns)
                writer.append([e for k, e in enumerate(fresh, first) if kept is None or kept[k]])
                returns += [float(each.reward.sum(dtype=np.float64)) for each in fresh]
                if fresh:
                    on_progress(Progress(len(returns), returns[-1], share))
            if source.length:
                _need_episode(writer, source.length)
            source.finish(writer, returns)
            writer.finish()


def _need_episode(writer: StoreWriter, length: str) -> None:
    """An empty store would be in the way of the next recording."""
    if writer.manifest["episodes"]:
        return
    shutil.rmtree(writer.path)
    raise ValueError(
        f"{writer.manifest['provenance']['env']}: no episode ended within {length}, so nothing was "
        "recorded; give more --steps"
    )


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


def grouped(
    episodes: Iterable[tuple[Episode, float]],
) -> Iterator[tuple[list[Episode], float]]:
    """Episodes, with the share done after each, in groups of a few seconds."""
    group: list[Episode] = []
    share = 0.0
    started = time.monotonic()
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
