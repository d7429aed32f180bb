"""From what a user asks for to a list of jobs: every combination, in a stable order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from rbve import algorithms
from rbve.data.formats import load
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


def evaluation_env(data: Sequence[Path], env: str) -> str | None:
    """Where to evaluate: the named environment, or the one the data was recorded in."""
    if env == "none":
        return None
    if env != "auto":
        return env
    recorded = {load(path, verify=False).provenance.get("env") for path in data}
    if len(recorded) > 1:
        raise ValueError(
            "the datasets come from different environments; train them one by one, or name --env"
        )
    return recorded.pop()
