"""From what a user asks for to a list of jobs: every combination, in a stable order."""

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rbve import algorithms, envs
from rbve.data.dataset import Dataset
from rbve.data.formats import load
from rbve.data.manifest import content_fingerprint, fingerprint
from rbve.envs.base import Env
from rbve.parts import DataRef
from rbve.spec import Spec, layout_of
from rbve.training.measures import recording

_FASTEST = {"learning_rate": 1, "path": 2, "seed": 3}


def jobs(base: Spec, vary: Mapping[str, Sequence[Any]]) -> list[Spec]:
    """Every combination of the values of fields and settings, in a stable order. With several
    algorithms, each takes the settings that it knows."""
    fields = layout_of().part_of
    own = {name: values for name, values in vary.items() if name in fields}
    names = own.pop("algorithm", [base.algorithm])
    # Last ones vary fastest.
    varied = dict(sorted(own.items(), key=lambda each: _FASTEST.get(each[0], 0)))
    settings = {name: values for name, values in vary.items() if name not in fields}
    settings |= {name: [value] for name, value in base.settings.items() if name not in settings}
    base = dataclasses.replace(base, settings={})
    chosen: list[tuple[str, dict[str, Any]]] = []  # algorithms and settings that they know
    unknown = dict(settings)
    for algorithm in names:
        loaded = algorithms.load(algorithm)
        known = {*loaded.config._fields, *loaded.options.__dataclass_fields__}
        mine = {name: values for name, values in settings.items() if name in known}
        unknown = {name: values for name, values in unknown.items() if name not in known}
        chosen += [(algorithm, choice) for choice in _product(mine)]
    if unknown:  # one algorithm's own error names the nearest setting
        chosen = [(names[0], {name: values[0] for name, values in unknown.items()})]
    return [
        base.varied(algorithm=algorithm, settings=own, **fields)
        for algorithm, own in chosen
        for fields in _product(varied)
    ]


def _product(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


def identified(job: Spec, dataset: Dataset) -> Spec:
    """The job with what its data says: fingerprint, group and replicate; defaults filled in.

    Recordings made alike but for the seed are replicates of one group; other data is a group of its
    own, unless the job names its group.
    """
    in_memory = not Path(job.data.path).exists()
    mark = job.data.fingerprint or (
        content_fingerprint(dataset) if in_memory else fingerprint(Path(job.data.path))
    )
    job = job.varied(fingerprint=mark)
    replicate = mark or job.data.path
    made = recording(dataset.provenance, job.data)
    origin = json.dumps(made, sort_keys=True) if made else replicate
    group = job.group or hashlib.sha256(origin.encode()).hexdigest()[:12]
    kept = {name: getattr(job.data, name) for name in ("keep", "side", "action")}
    words = [f"{name}={value}" for name, value in kept.items() if value != getattr(DataRef, name)]
    label = job.group if job.replicate else " ".join([group, *words])
    return job.varied(group=label, replicate=replicate).resolved(dataset.obs_shape)


def evaluation_env(data: Sequence[Path], env: str) -> tuple[str | None, list[str]]:
    """Where to evaluate: the named environment, or the one the data was recorded in; and notes."""
    if env != "auto":
        return None if env == "none" else env, []
    recorded = [_recorded_in(path) for path in data]
    if len({name for name, _ in recorded}) > 1:
        raise ValueError(
            "the datasets come from different environments; train them one by one, or name --env"
        )
    return recorded[0][0], [note for _, note in recorded if note]


def _recorded_in(path: Path) -> tuple[str | None, str]:
    """The environment a dataset names, or None and why it is of no use here."""
    about = load(path, "native", verify=False).provenance
    try:
        name = envs.named_in_file(about.get("env"), path, about.get("env_settings"))
    except envs.NotHere as error:
        return None, f"{error}; nothing is evaluated (name an environment with --env)"
    if name and about.get("format") == "minari":
        try:  # others recorded there, maybe what no adapter here can show
            world = envs.load(name)
        except (ValueError, ImportError) as error:
            return None, f"{path}: {error}; nothing is evaluated (name an environment with --env)"
        if not isinstance(world, Env):
            world.close()
    return name, ""
