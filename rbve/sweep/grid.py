"""From what a user asks for to a list of jobs: every combination, in a stable order."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rbve import algorithms, envs
from rbve.data.formats import load
from rbve.envs.base import Env
from rbve.spec import Spec, layout_of

FASTEST = {"learning_rate": 1, "path": 2, "seed": 3}


def jobs(base: Spec, vary: Mapping[str, Sequence[Any]]) -> list[Spec]:
    """Every combination of the values of fields and settings, in a stable order.

    With several algorithms, each takes the settings that it knows.
    """
    fields = layout_of().part_of
    own = {name: values for name, values in vary.items() if name in fields}
    names = own.pop("algorithm", [base.algorithm])
    # Last ones vary fastest.
    varied = dict(sorted(own.items(), key=lambda each: FASTEST.get(each[0], 0)))
    settings = {name: values for name, values in vary.items() if name not in fields}
    settings |= {name: [value] for name, value in base.settings.items() if name not in settings}
    base = dataclasses.replace(base, settings={})
    return [
        base.varied(algorithm=algorithm, settings=chosen, **dict(zip(varied, values, strict=True)))
        for algorithm, chosen in combinations(names, settings)
        for values in itertools.product(*varied.values())
    ]


def combinations(
    names: Sequence[str], settings: Mapping[str, Sequence[Any]]
) -> list[tuple[str, dict[str, Any]]]:
    """Algorithms with every combination of the settings each of them knows."""
    result = []
    unknown = dict(settings)
    for algorithm in names:
        loaded = algorithms.load(algorithm)
        known = {*loaded.config._fields, *loaded.options.__dataclass_fields__}
        mine = {name: values for name, values in settings.items() if name in known}
        unknown = {name: values for name, values in unknown.items() if name not in known}
        for choice in itertools.product(*mine.values()):
            result.append((algorithm, dict(zip(mine, choice, strict=True))))
    if unknown:
        # One algorithm's own error names the nearest setting.
        return [(names[0], {name: values[0] for name, values in unknown.items()})]
    return result


def parse_settings(words: Sequence[str]) -> dict[str, list[str]]:
    """NAME=VALUE or NAME=VALUE,VALUE."""
    found: dict[str, list[str]] = {}
    for item in words:
        name, equals, values = item.partition("=")
        if not equals or not name or not values:
            raise ValueError(f"--set takes NAME=VALUE or NAME=VALUE,VALUE; got {item!r}")
        found[name] = values.split(",")
    return found


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
