"""Experiments, one file per figure or table: the question, the grid, the measure, no loops.

A file's presence is its registration. It holds an EXPERIMENT, made of the words below; what a word
means at a scale is said once, here.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rbve import registry

FOLDER = Path(__file__).parent

Settings = Mapping[str, Any]  # of an algorithm; learning_rate and steps may be among them


@dataclass(frozen=True)
class Data:
    """What is trained on: a recording, and what is kept of it. One dataset per seed."""

    env: str
    noise: float = 0.0  # probability that the environment executes a random action
    expert: float | None = None  # ε of the online agent's best snapshot; None = all its experience
    keep: float = 0.1  # share of the episodes (paper: .1)
    side: Literal["all", "above", "below"] = "all"  # episodes by return against the mean
    action: Literal["chosen", "executed"] = "chosen"  # which one is learned from
    script: float | None = None  # ε of a player written for the game, in the online agent's place
    memory: bool = False  # the online agent has one: R2D2, else DQN


@dataclass(frozen=True)
class Method:
    algorithm: str
    settings: Settings = field(default_factory=dict)  # held fixed
    sweep: tuple[Settings, ...] = ({},)  # tried; which is best is chosen on other datasets


@dataclass(frozen=True)
class Scale:
    datasets: int  # recordings per kind of data
    steps: int  # updates per run
    episodes: float  # share of what is recorded in full: the paper's episodes, MinAtar's steps
    settings: int  # of each method's sweep, from the first on
    evaluations: int  # over a run
    eval_episodes: int = 100  # each (paper: 100)
    batch_size: int = 128  # transitions per update (paper: 128 on bsuite)
    target_period: int = 0  # updates between target syncs; 0 = steps / 800
    name: str = ""

    @property
    def period(self) -> int:
        return self.target_period or max(1, self.steps // 800)


@dataclass(frozen=True)
class Experiment:
    question: str
    paper: str  # where the paper says it
    data: tuple[Data, ...]
    methods: tuple[Method, ...]
    figure: Literal["methods", "against"]  # bars per method, or a measure against what varies
    against: str = ""  # what varies: keep, lam, epsilon, side, action, filter, ...
    measures: tuple[str, ...] = ("return",)
    scales: tuple[Scale, ...] = ()  # where it has its own
    spec: Settings = field(default_factory=dict)  # further fields of a run's Spec, as stack
    learned: float = 0.0  # an environment counts if its recorders end so many times above random
    # Best returns known: an environment counts if its recorders came half way there from random.
    best: Mapping[str, float] = field(default_factory=dict)

    def at(self, scale: Scale) -> Scale:
        """The scale asked for, at this experiment's own sizes."""
        return next((own for own in self.scales if own.name == scale.name), scale)

    def with_noise(self, levels: Sequence[float]) -> Experiment:
        """The same at other levels of noise (the paper's appendix: 0 to .5)."""
        if bad := [noise for noise in levels if not 0 <= noise <= 1]:
            raise ValueError(f"noise is a probability from 0 to 1, not {bad[0]:g}")
        data = dict.fromkeys(replace(each, noise=noise) for each in self.data for noise in levels)
        return replace(self, data=tuple(data))


@dataclass(frozen=True)
class Theory:
    """An experiment that needs no data: a module of rbve.paper.theory, which says what it asks."""

    module: str
    paper: str


SCALES = {
    scale.name: scale
    for scale in (
        Scale(2, 10_000, episodes=0.25, settings=2, evaluations=5, eval_episodes=20, name="quick"),
        Scale(5, 100_000, episodes=1.0, settings=5, evaluations=10, name="desk"),
        Scale(5, 2_000_000, episodes=1.0, settings=10, evaluations=20, name="paper"),
    )
}


def names() -> list[str]:
    return registry.names(FOLDER)


def summary(name: str) -> str:
    return registry.summary(FOLDER, name)


def load(name: str) -> Experiment | Theory:
    if name not in names():
        raise registry.unknown("experiment", name, names())
    return importlib.import_module(f"rbve.paper.experiments.{name}").EXPERIMENT
