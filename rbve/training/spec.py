"""What to train. A Job is JSON through and through; its id is a hash of that JSON."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from rbve import algorithms
from rbve.algorithms import Algorithm
from rbve.data.dataset import Dataset
from rbve.data.transitions import View
from rbve.networks.torsos import TORSOS
from rbve.ops import TD
from rbve.registry import did_you_mean
from rbve.schema import INT32, MAX_WIDTH

POSITIVE = {"beta", "cap", "kappa"}  # settings that divide or bound


@dataclass(frozen=True)
class Spec:
    """Choices shared by all members of one program, and the plan of the run."""

    algorithm: str = "rbve"  # a name (`rbve train --help` lists them) or a path to a .py file
    algorithm_version: str = ""  # hash of a .py file: an edited one is another job
    options: Mapping[str, Any] = field(default_factory=dict)  # the algorithm's Options
    torso: str = "auto"  # mlp, atari (SAME padding), atari_valid, board; auto = by the shape
    hidden: tuple[int, ...] = ()  # units per dense layer; none = mlp 56 56, atari 512, board 128
    stack: int = 1  # frames joined into one observation (Atari: 4)
    memory: int = 0  # units of an LSTM (R2D2: 512); 0 = a decision depends on its observation alone
    sequence: int = 0  # with memory: steps trained on at a time; 0 = whole episodes (paper)
    burn_in: int = 0  # with `sequence`: steps before it that only warm the memory (R2D2: 40)
    rescale: bool | None = None  # learn h(Q); None = with memory, as every recurrent method here
    rows: str = "auto"  # where they wait to be drawn: memory, disk, or auto = memory if few
    batch_size: int = 0  # transitions, or sequences, per update; 0 = 128, with memory 8 (paper)
    td: str = "square"  # form of the TD loss: square or huber
    gamma: float = 0.99  # discount per step (paper: .99)
    n_step: int = 0  # window of summed rewards; 0 = 1, with memory 5 (R2D2)
    clip_rewards: bool = False  # rewards to [−1, 1]
    steps: int = 100_000  # updates (paper: 2M)
    every: int = 0  # updates between evaluations and checkpoints; 0 = steps / 20
    env: str | None = None  # environment to evaluate in; None = data only
    eval_episodes: int = 100  # episodes per evaluation
    eval_epsilon: float = 0.4**8  # share of random actions in evaluation (paper: .4⁸)
    final_evaluations: int = 5  # last ones averaged for the final figure, none of the first half

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        file = Path(self.algorithm)
        if not self.algorithm_version and file.suffix == ".py" and file.is_file():
            object.__setattr__(self, "algorithm_version", algorithms.version(file))
        if not self.every:
            object.__setattr__(self, "every", max(1, self.steps // 20))
        if self.rescale is None:
            object.__setattr__(self, "rescale", self.memory > 0)
        if not self.batch_size:
            object.__setattr__(self, "batch_size", 8 if self.memory else 128)
        if not self.n_step:
            object.__setattr__(self, "n_step", 5 if self.memory else 1)
        for name in ("batch_size", "steps", "every", "eval_episodes", "final_evaluations"):
            if not 1 <= getattr(self, name) <= INT32:
                raise ValueError(f"{name} must lie in [1, {INT32}]; got {getattr(self, name)}")
        if self.torso not in TORSOS:
            raise ValueError(f"torso must be one of {', '.join(TORSOS)}; got {self.torso!r}")
        if self.hidden and not 1 <= min(self.hidden) <= max(self.hidden) <= MAX_WIDTH:
            raise ValueError(f"hidden needs layer widths in [1, {MAX_WIDTH}]; got {self.hidden}")
        if not 1 <= self.stack <= 64:
            raise ValueError(f"stack must lie in [1, 64]; got {self.stack}")
        self.check_memory()
        if self.rows not in ("auto", "memory", "disk"):
            raise ValueError(f"rows must be auto, memory or disk; got {self.rows!r}")
        if not 0 <= self.eval_epsilon <= 1:
            raise ValueError(f"eval_epsilon must lie in [0, 1]; got {self.eval_epsilon}")
        TD(self.td)  # type: ignore[arg-type]
        self.view  # noqa: B018  checks γ and n

    def check_memory(self) -> None:
        if not 0 <= self.memory <= MAX_WIDTH:
            raise ValueError(f"memory must lie in [0, {MAX_WIDTH}]; got {self.memory}")
        if min(self.sequence, self.burn_in) < 0 or max(self.sequence, self.burn_in) > INT32:
            raise ValueError(
                f"sequence and burn_in must lie in [0, {INT32}]; got {self.sequence} and "
                f"{self.burn_in}"
            )
        if (self.sequence or self.burn_in) and not self.memory:
            raise ValueError("sequence and burn_in need a memory; add --memory 512")
        if self.burn_in and not self.sequence:
            raise ValueError(
                "whole episodes need no burn-in; say how long windows are with --sequence"
            )
        if self.memory and self.stack > 1:
            raise ValueError("a network with memory sees one frame at a time; leave --stack out")

    @property
    def view(self) -> View:
        return View(self.gamma, self.n_step, self.clip_rewards)

    @property
    def algorithm_name(self) -> str:
        """Short, for tables and file names: a path to a .py file goes by its stem."""
        return Path(self.algorithm).stem

    def load_algorithm(self) -> Algorithm:
        return algorithms.load(self.algorithm)

    def load_options(self) -> Any:
        return self.load_algorithm().options(**self.options)


@dataclass(frozen=True)
class DataRef:
    """Which data: a store, and what is kept of it."""

    path: str
    keep: float = 1.0  # share of the episodes
    keep_seed: int = 0
    side: str = "all"  # episodes by return: all, above or below the mean
    action: str = "chosen"  # the action that trains: chosen or executed
    fingerprint: str = ""  # of the store's content, so that other data is another job

    def of(self, dataset: Dataset) -> Dataset:
        if self.action not in ("chosen", "executed"):
            raise ValueError(f"action must be 'chosen' or 'executed'; got {self.action!r}")
        if self.action == "executed":
            dataset = dataset.with_executed_actions()
        if self.side != "all":
            dataset = dataset.filter_by_return(self.side)  # type: ignore[arg-type]
        return dataset.subsample(self.keep, self.keep_seed)


def default_period(steps: int) -> int:
    """Updates between target syncs: steps / 800 (the paper's 2500 of 2M), but no less than 100.

    A sync carries values one step back, so too few of them leave values short; under a target that
    moves every few updates they run away where actions are unseen. Runs under 2,000 updates keep 20
    syncs.
    """
    return max(1, steps // 800, min(100, steps // 20))


@dataclass(frozen=True)
class Job:
    """One member: data, choices, numbers and a seed."""

    data: DataRef
    spec: Spec
    config: Mapping[str, float] = field(default_factory=dict)  # the algorithm's Config
    learning_rate: float = 3e-4  # Adam (paper grid: 8e-5, 1e-4, 3e-4)
    target_period: int = 0  # updates between target syncs; 0 = default_period(steps)
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.target_period:
            object.__setattr__(self, "target_period", default_period(self.spec.steps))
        if not 1 <= self.target_period <= INT32:
            raise ValueError(f"target_period must lie in [1, {INT32}]; got {self.target_period}")
        if not 0 <= self.seed <= INT32:
            raise ValueError(f"seed must lie in [0, {INT32}]; got {self.seed}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be positive; got {self.learning_rate}")

    def to_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> Job:
        return Job(
            **{
                **content,
                "data": DataRef(**content["data"]),
                "spec": Spec(**content["spec"]),
            }
        )

    @property
    def id(self) -> str:
        """Of what is learned from what, wherever that lies: data is known by its fingerprint."""
        content = self.to_json()
        if self.data.fingerprint:
            del content["data"]["path"]
        text = json.dumps(content, sort_keys=True)
        return f"{self.spec.algorithm_name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def program(self) -> str:
        """Members with equal programs train together."""
        return json.dumps(dataclasses.asdict(self.spec), sort_keys=True)


def resolve(spec: Spec, settings: Mapping[str, Any]) -> tuple[Spec, dict[str, float]]:
    """Split settings by name into the algorithm's Options and its Config, defaults filled in."""
    algorithm = spec.load_algorithm()
    config = dict(algorithm.config()._asdict())
    options = dataclasses.asdict(algorithm.options(**spec.options))
    for name, value in settings.items():
        if name in config:
            config[name] = as_number(name, value)
        elif name in options:
            options[name] = as_type_of(options[name], name, value)
            check_choice(get_type_hints(algorithm.options)[name], name, options[name])
        else:
            known = [*config, *options]
            raise ValueError(
                f"{spec.algorithm} has no setting {name!r}.{did_you_mean(name, known)} "
                f"Known: {', '.join(known) or 'none'}"
            )
    return dataclasses.replace(spec, options=options), config


def check_choice(hint: Any, name: str, value: Any) -> None:
    if get_origin(hint) is Literal and value not in get_args(hint):
        known = ", ".join(map(str, get_args(hint)))
        raise ValueError(f"setting {name!r} takes one of {known}; got {value!r}")


def as_number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"setting {name!r} takes a number; got {value!r}") from None
    if not math.isfinite(number) or (name in POSITIVE and number <= 0):
        wanted = "a positive number" if name in POSITIVE else "a finite number"
        raise ValueError(f"setting {name!r} takes {wanted}; got {value!r}")
    return number


def as_type_of(default: Any, name: str, value: Any) -> Any:
    if isinstance(default, bool):
        known = {"true": True, "false": False, "1": True, "0": False}
        if str(value).lower() not in known:
            raise ValueError(f"setting {name!r} takes true or false; got {value!r}")
        return known[str(value).lower()]
    if isinstance(default, int):
        number = as_number(name, value)
        if number != int(number) or not 1 <= number <= INT32:
            raise ValueError(f"setting {name!r} takes a whole number from 1 on; got {value!r}")
        return int(number)
    return type(default)(value)
