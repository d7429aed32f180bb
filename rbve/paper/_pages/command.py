"""The command that remakes a run: `rbve train` with every option that differs from its default."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

from rbve import algorithms
from rbve.spec import Spec

_OWN_WAY = ("algorithm", "algorithm_version", "path", "fingerprint", "env", "group", "replicate")
_WITH_VALUE = ("rescale",)  # true, false, or left to the memory


@cache
def defaults(algorithm: str) -> dict[str, Any]:
    """Of the algorithm's own settings; none of a user's file, which a report does not execute."""
    if algorithm not in algorithms.names():
        return {}
    known = algorithms.built_in(algorithm)
    return {**known.config()._asdict(), **asdict(known.options())}


def settings(job: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the algorithm that differ from its defaults."""
    usual = defaults(job["algorithm"])
    return {name: value for name, value in job["settings"].items() if usual.get(name) != value}


def command(job: Mapping[str, Any]) -> str:
    """A line for a shell; ValueError where `rbve train` cannot say what the run did."""
    return shlex.join(["rbve", "train", job["data"]["path"], *arguments(job)])


def arguments(job: Mapping[str, Any]) -> Iterator[str]:
    spec = Spec.from_json(job)
    yield from ("--algorithm", spec.algorithm)
    for name, value in settings(job).items():
        yield from ("--set", f"{name}={written(value)}")
    yield from ("--env", spec.evaluation.env or "none")
    for name, value in spec.differences().items():
        flag = f"--{name.replace('_', '-')}"
        if name in _OWN_WAY:
            continue
        if isinstance(value, bool) and name not in _WITH_VALUE:
            yield flag if value else flag.replace("--", "--no-", 1)
        elif isinstance(value, tuple):
            yield from (flag, *map(str, value))
        else:
            yield from (flag, str(value) if name in _WITH_VALUE else written(value))


def written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value) if isinstance(value, float) else str(value)
    if "," in text:
        raise ValueError(f"`rbve train` reads a comma in {text!r} as several settings")
    return text
