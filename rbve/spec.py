"""What to train: one nested, frozen Spec, JSON through and through.

The same object stands behind the flags of `rbve train`, the keywords of `rbve.train`, presets,
config files, experiments, result rows and policy files. Names of fields are unique across its
parts, so that a flat name (gamma) finds its part (view). None stands where a default depends on
other fields; `resolved` fills those in. The text on an attribute, here and in rbve/parts.py, is its
help on the command line.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_type_hints

from rbve import algorithms, parts
from rbve.algorithms import Algorithm
from rbve.algorithms._settings import complete_settings
from rbve.data.transitions import View
from rbve.parts import FRAMES, DataRef, EvaluationSpec, NetworkSpec, OptimiserSpec, SamplingSpec
from rbve.schema import UNSET, check_value


@dataclass(frozen=True)
class Spec:
    """One run: data, algorithm, numbers and a seed.

    Attributes:
        algorithm: A name, or a path to a .py file.
        settings: The algorithm's own numbers and choices (its Config and Options).
        algorithm_version: Hash of a .py file: an edited one is another job.
        td: Form of the TD loss. With huber, values run away on cartpole at short target periods
            where those of the square do not: keep the square there.
        steps: Updates (paper: 2 million).
        seed: Seed of weights and batches.
        group: Which problem the run belongs to; reports average over the runs of a group.
        replicate: Which copy of the problem's data it learns from.
    """

    algorithm: str = "rbve"
    settings: Mapping[str, Any] = field(default_factory=dict)
    algorithm_version: str = ""
    td: Literal["square", "huber"] = "square"
    steps: int = 100_000
    seed: int = 0
    group: str = ""
    replicate: str = ""
    data: DataRef = field(default_factory=DataRef)
    network: NetworkSpec = field(default_factory=NetworkSpec)
    view: View = field(default_factory=lambda: View(n_step=UNSET))
    optimiser: OptimiserSpec = field(default_factory=OptimiserSpec)
    sampling: SamplingSpec = field(default_factory=SamplingSpec)
    evaluation: EvaluationSpec = field(default_factory=EvaluationSpec)

    def __post_init__(self) -> None:
        layout = self._layout()
        checked: dict[str, dict[str, Any]] = {part: {} for part in ("", *layout.parts)}
        for name, value in self.flat().items():
            checked[layout.part_of[name]][name] = check_value(name, layout.hints[name], value)
        for part in layout.parts:
            checked[""][part] = dataclasses.replace(getattr(self, part), **checked[part])
        for name, value in checked[""].items():
            object.__setattr__(self, name, value)
        file = Path(self.algorithm)
        if not self.algorithm_version and file.suffix == ".py" and file.is_file():
            object.__setattr__(self, "algorithm_version", algorithms.version(file))
        network, sampling = self.network, self.sampling
        if (sampling.sequence or sampling.burn_in) and not network.memory:
            raise ValueError("sequence and burn_in need a memory; add --memory 512")
        if sampling.burn_in and not sampling.sequence:
            remedy = "say how long windows are with --sequence"
            raise ValueError(f"whole episodes need no burn-in; {remedy}")
        if network.memory and network.stack > 1:
            raise ValueError("a network with memory sees one frame at a time; leave --stack out")

    @classmethod
    def _layout(cls) -> "_Layout":
        kind: Any = cls
        return layout_of(kind)

    @classmethod
    def of(cls, **keywords: Any) -> Self:
        """By flat names of fields; any other name is a setting of the algorithm."""
        return cls().varied(**keywords)

    def varied(self, **keywords: Any) -> Self:
        """The same with other values of fields, or of settings, by their flat names."""
        layout = self._layout()
        changed: dict[str, dict[str, Any]] = {}
        settings = {**self.settings, **keywords.pop("settings", {})}
        for name, value in keywords.items():
            if name in layout.parts:
                changed.setdefault("", {})[name] = value
            elif name in layout.part_of:
                known = check_value(name, layout.hints[name], value)
                changed.setdefault(layout.part_of[name], {})[name] = known
            else:
                settings[name] = value
        own = changed.pop("", {})
        if own.get("algorithm", self.algorithm) != self.algorithm:
            own.setdefault("algorithm_version", "")
        for part, values in changed.items():
            own[part] = dataclasses.replace(own.get(part, getattr(self, part)), **values)
        return dataclasses.replace(self, settings=settings, **own)

    def flat(self) -> dict[str, Any]:
        return {
            name: getattr(getattr(self, part) if part else self, name)
            for name, part in self._layout().part_of.items()
        }

    def filled(self) -> dict[str, Any]:
        """Defaults that depend on other fields, where nothing else is said."""
        memory, own = self.network.memory > 0, self.flat()
        usual = {
            "rescale": memory,
            "batch_size": 8 if memory else 128,
            "n_step": 5 if memory else 1,
            "every": max(1, self.steps // 20),
            "target_period": parts.default_period(self.steps),
            "holdout": parts.HOLDOUT if self.evaluation.env is None else 0.0,
        }
        return {name: value for name, value in usual.items() if own[name] is UNSET}

    def resolved(self, obs_shape: Sequence[int] | None = None) -> Self:
        """With every default filled in, those of the algorithm's settings too.

        Args:
            obs_shape: Of the data's observations; needed for stack 0, which goes by it.
        """
        filled = self.filled()
        if not self.network.stack:
            if obs_shape is None:
                raise ValueError("stack 0 goes by the data, which is not known here; give a number")
            filled["stack"] = 1 if len(obs_shape) == 3 and obs_shape[-1] == FRAMES else FRAMES
        settings = complete_settings(self.load_algorithm(), self.settings, [*self.flat()])
        return self.varied(settings=settings, **filled)

    def to_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        layout = cls._layout()
        flat: dict[str, Any] = {}
        for name, value in content.items():
            flat |= value if name in layout.parts else {name: value}
        if unknown := [name for name in flat if name not in layout.part_of]:
            raise ValueError(f"no field of a run: {', '.join(unknown)}")
        # A job that does not speak of it is older than holding out, and trained on all episodes.
        return cls().varied(**{"holdout": 0.0, **flat})

    @property
    def id(self) -> str:
        """Of what is learned from what: a hash of all that differs from the defaults.

        So a field that comes to be leaves the ids of earlier runs alone. Data is known by its
        fingerprint, wherever it lies; labels change nothing that is learned.
        """
        own = self.resolved()
        usual = complete_settings(self.load_algorithm(), {})
        settings = {k: v for k, v in own.settings.items() if usual[k] != v}
        unheard = {"group", "replicate", *(["path"] if self.data.fingerprint else [])}
        content = {k: v for k, v in own.differences().items() if k not in unheard}
        # By what is held out, not by the default, which is younger than runs on all episodes.
        content.pop("holdout", None)
        content |= {"holdout": own.data.holdout} if own.data.holdout else {}
        text = json.dumps({**content, "settings": settings}, sort_keys=True)
        return f"{self.algorithm_name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def differences(self) -> dict[str, Any]:
        """Fields that differ from their defaults, by flat name; without the settings."""
        usual = type(self)().flat()
        unset = dict.fromkeys(type(self)().filled(), UNSET)
        usual |= self.varied(**unset).filled()
        own = self.flat() | self.filled()
        return {k: v for k, v in own.items() if k != "settings" and v != usual[k]}

    @property
    def program(self) -> str:
        """Members with equal programs train together."""
        own = self.to_json()
        numbers = self.load_algorithm().config._fields
        own["settings"] = {k: v for k, v in own["settings"].items() if k not in numbers}
        for name in ("data", "optimiser", "seed", "group", "replicate"):
            del own[name]
        own["polyak"] = self.optimiser.polyak  # the only one of the optimiser's numbers compiled in
        return json.dumps(own, sort_keys=True)

    @property
    def algorithm_name(self) -> str:
        """Short, for tables and file names: a path to a .py file goes by its stem."""
        return Path(self.algorithm).stem

    def load_algorithm(self) -> Algorithm:
        return algorithms.load(self.algorithm)

    def load_config(self) -> Any:
        return self._chosen(kind := self.load_algorithm().config, kind._fields)

    def load_options(self) -> Any:
        return self._chosen(kind := self.load_algorithm().options, kind.__dataclass_fields__)

    def _chosen(self, kind: Any, names: Iterable[str]) -> Any:
        own = complete_settings(self.load_algorithm(), self.settings)
        return kind(**{name: own[name] for name in names})


class _Layout(NamedTuple):
    """Where a class of specifications keeps its fields."""

    parts: list[str]
    part_of: dict[str, str]  # flat name -> part; "" of the Spec itself
    hints: dict[str, Any]  # flat name -> type


@functools.cache
def layout_of(cls: Any = Spec) -> _Layout:
    layout = _Layout([], {}, {})
    for name, hint in get_type_hints(cls).items():
        own = get_type_hints(hint) if dataclasses.is_dataclass(hint) else {name: hint}
        layout.parts.extend([name] * dataclasses.is_dataclass(hint))
        layout.part_of.update(dict.fromkeys(own, name if dataclasses.is_dataclass(hint) else ""))
        layout.hints.update(own)
    return layout
