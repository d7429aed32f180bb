"""From what a user asks for to a list of jobs: every combination, in a stable order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from rbve import algorithms, envs
from rbve.data.formats import load
from rbve.envs.base import Env
from rbve.training.spec import DataRef, Job, Spec


def jobs(
    data: Sequence[DataRef],
    specs: Sequence[tuple[Spec, dict[str, float]]],
    seeds: Sequence[int],
    learning_rates: Sequence[float],
    target_period: int,
) -> list[Job]:
    """Every combination, in a stable order."""
    return [
        Job(ref, spec, config, rate, target_period, seed)
        for spec, config in specs
        for rate in learning_rates
        for ref in data
        for seed in seeds
    ]


def combinations(names: Sequence[str], settings: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Algorithms with every combination of the settings each of them knows."""
    wanted: dict[str, list[str]] = {}
    for item in settings:
        name, equals, values = item.partition("=")
        if not equals or not name or not values:
            raise ValueError(f"--set takes NAME=VALUE or NAME=VALUE,VALUE; got {item!r}")
        wanted[name] = values.split(",")
    result = []
    unknown = dict(wanted)
    for algorithm in names:
        loaded = algorithms.load(algorithm)
        known = {*loaded.config._fields, *loaded.options.__dataclass_fields__}
        mine = {name: values for name, values in wanted.items() if name in known}
        unknown = {name: values for name, values in unknown.items() if name not in known}
        for choice in itertools.product(*mine.values()):
            result.append((algorithm, dict(zip(mine, choice, strict=True))))
    if unknown:
        # One algorithm's own error names the nearest setting.
        return [(names[0], {name: values[0] for name, values in unknown.items()})]
    return result


def evaluation_env(data: Sequence[Path], env: str) -> tuple[str | None, list[str]]:
    """Where to evaluate: the named environment, or the one the data was recorded in; and notes."""
    if env == "none":
        return None, []
    if env != "auto":
        return env, []
    found = [recorded_in(path) for path in data]
    if len({name for name, _ in found}) > 1:
        raise ValueError(
            "the datasets come from different environments; train them one by one, or name --env"
        )
    return found[0][0], [note for _, note in found if note]


def recorded_in(path: Path) -> tuple[str | None, str]:
    """The environment a dataset names, or None and why it is of no use here."""
    about = load(path, verify=False).provenance
    try:
        name = envs.named_in_file(about.get("env"), path, about.get("env_settings"))
        if name and about.get("format") == "minari":
            playable(name, path)  # others recorded there, maybe what no adapter here can show
    except envs.NotHere as error:
        return None, f"{error}; nothing is evaluated (name an environment with --env)"
    return name, ""


def playable(name: str, path: Path) -> None:
    try:
        world = envs.load(name)
    except (ValueError, ImportError) as error:
        raise envs.NotHere(f"{path}: {error}") from error
    if not isinstance(world, Env):
        world.close()
