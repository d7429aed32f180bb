"""Experiments, one file per figure or table: the question, the grid, the measure, no loops.

A file's presence is its registration; a path to a file of one's own works too. It holds an
EXPERIMENT, made of the words below; what a word means at a scale is said once, here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from rbve import registry

_FILES = registry.Registry("experiment", __name__, __file__)

LONGER = 3  # times the updates: whether the order of methods stays tells whether they sufficed
Settings = Mapping[str, Any]  # of an algorithm; learning_rate and steps may be among them


@dataclass(frozen=True)
class Data:
    """What is trained on: a recording, and what is kept of it. One dataset per seed."""

    env: str
    noise: float = 0.0  # probability that the environment executes a random action
    # ε of the online agent's best snapshot, 1 = uniform play; None = all the agent's experience
    expert: float | None = None
    episodes: int | None = None  # of an expert, at full scale; None = as many as others
    keep: float = 0.1  # share of the episodes (paper: .1)
    side: Literal["all", "above", "below"] = "all"  # episodes by return against the mean
    action: Literal["chosen", "executed"] = "chosen"  # which one is learned from
    script: float | None = None  # ε of a player written for the game, in the online agent's place
    memory: bool = False  # the online agent has one: R2D2, else DQN
    first: int = 0  # seed of its first recording: what is tuned on is none of what is reported on

    def seeds(self, datasets: int) -> range:
        """Of so many recordings."""
        return range(self.first, self.first + datasets)

    def __post_init__(self) -> None:
        for name in ("noise", "expert", "keep", "script"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"{name} is a share from 0 to 1, not {value:g}")
        if self.side not in ("all", "above", "below"):
            raise ValueError(f"side is all, above or below, not {self.side!r}")
        if self.action not in ("chosen", "executed"):
            raise ValueError(f"action is chosen or executed, not {self.action!r}")
        if self.episodes is not None and (self.expert is None or self.episodes < 1):
            raise ValueError(f"episodes are an expert's, 1 or more, not {self.episodes}")
        if self.first < 0:
            raise ValueError(f"first is a seed, 0 or more, not {self.first}")
        if self.script is not None and self.expert is not None:
            raise ValueError(f"{self.env}: data is a script's or an expert's, not both")


@dataclass(frozen=True)
class Method:
    """An algorithm, and the settings that it is tried with."""

    algorithm: str
    settings: Settings = field(default_factory=dict)  # held fixed
    sweep: tuple[Settings, ...] = ({},)  # tried; which is best is chosen on other datasets


@dataclass(frozen=True)
class Scale:
    """How much of everything, by the name that --scale takes."""

    datasets: int  # recordings per kind of data
    steps: int  # updates per run
    episodes: float  # share of what is recorded in full: the paper's episodes, MinAtar's steps
    settings: int  # of each method's sweep, from the first on
    evaluations: int  # over a run
    eval_episodes: int = 100  # each (paper: 100)
    batch_size: int = 128  # transitions per update (paper: 128 on bsuite)
    target_period: int = 0  # updates between target syncs; 0 = steps / 800
    longer: int = 0  # times the updates of runs that tell whether `steps` suffice; 0 = no such runs
    name: str = ""

    @property
    def period(self) -> int:
        return self.target_period or max(1, self.steps // 800)


@dataclass(frozen=True, kw_only=True)
class Outline:
    """What a page needs of an experiment; a study keeps it, so that a page executes no file."""

    question: str
    figure: str = ""  # "methods": bars per method; "against": a measure against what varies
    against: str = ""  # what varies: keep, lam, epsilon, side, action, filter, ...
    measures: tuple[str, ...] = ("return",)
    title: str = ""  # in the page; "" = its name
    paper: str = ""  # where the paper says it
    file: str = ""  # of the user's; "" = one of this package
    version: str = ""  # hash of that file


@dataclass(frozen=True, kw_only=True)
class Experiment(Outline):
    """A question to data: every method on every kind of data."""

    data: tuple[Data, ...]
    methods: tuple[Method, ...]
    scales: tuple[Scale, ...] = ()  # where it has its own
    spec: Settings = field(default_factory=dict)  # further fields of a run's Spec, as stack
    learned: float = 0.0  # an environment counts if its recorders end so many times above random
    # Best returns known: an environment counts if its recorders came half way there from random.
    best: Mapping[str, float] = field(default_factory=dict)
    tuned: str = ""  # experiment by whose rows its settings were frozen

    def __post_init__(self) -> None:
        for name, kind in (("data", Data), ("methods", Method), ("scales", Scale)):
            content, word = getattr(self, name), kind.__name__
            right = isinstance(content, tuple) and all(isinstance(each, kind) for each in content)
            if not right or not (content or name == "scales"):
                raise ValueError(f"{name} takes a tuple of {word}, e.g. ({word}(...),)")
        if not self.figure:
            object.__setattr__(self, "figure", "against" if self.against else "methods")
        if isinstance(self.measures, str) or not all(isinstance(m, str) for m in self.measures):
            raise ValueError('measures takes a tuple of names, e.g. ("return",)')

    @property
    def outline(self) -> Outline:
        return Outline(**{each.name: getattr(self, each.name) for each in fields(Outline)})

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


def scales(**sizes: tuple[Any, ...]) -> tuple[Scale, ...]:
    """name=(datasets, steps, episodes, settings, evaluations, ...) in the order of Scale.

    But for quick, which only shows that all works, each asks whether its updates suffice.
    """
    return tuple(
        replace(Scale(*each), name=name, longer=0 if name == "quick" else LONGER)
        for name, each in sizes.items()
    )


SCALES = {
    each.name: each
    for each in scales(
        quick=(2, 10_000, 0.25, 2, 5, 20),
        desk=(5, 100_000, 1.0, 5, 10),
        paper=(5, 2_000_000, 1.0, 10, 20),
    )
}


def names() -> list[str]:
    """Those of this package."""
    return _FILES.names()


def summary(name: str) -> str:
    """The first line of its file."""
    return _FILES.summary(name)


def load(name: str) -> Experiment | Theory:
    """One of `names()`, or the path of a file ending in .py, which is executed."""
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name not in names():
        raise registry.unknown("experiment", name, names())
    return _FILES.load(name).EXPERIMENT


def load_all(given: Sequence[str]) -> dict[str, Experiment | Theory]:
    """By name, a file by its stem; "all" stands for those of this package."""
    loaded: dict[str, Experiment | Theory] = {}
    asked = [each for name in given for each in (names() if name == "all" else [name])]
    for each in dict.fromkeys(asked):
        stem = Path(each).stem if each.endswith(".py") else each
        if stem in loaded:
            raise ValueError(f"{each}: two experiments are called {stem!r}; rename one")
        loaded[stem] = load(each)
    return loaded


def _from_file(file: Path) -> Experiment:
    try:
        module = registry.load_file(file, "experiment")
    except ValueError as error:
        raise ValueError(f"{error}{_line_in(file, error)}") from None
    if not re.fullmatch(r"[A-Za-z0-9_-]+", file.stem) or file.stem in (*names(), "all"):
        raise ValueError(
            f"{file}: an experiment goes by its file's name; choose one of letters, digits, _ and "
            "- that no experiment of this package has"
        )
    experiment = getattr(module, "EXPERIMENT", None)
    if not isinstance(experiment, Experiment):
        raise ValueError(
            f"{file}: lacks EXPERIMENT, an Experiment of rbve.paper.experiments (docs/studies.md)"
        )
    return replace(experiment, file=str(file), version=registry.version(file))


def _line_in(file: Path, error: ValueError) -> str:
    """Where in the user's file it came from."""
    line, trace = 0, error.__cause__ and error.__cause__.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == str(file.absolute()):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" (line {line})" if line else ""
