"""The command that remakes a run: `rbve train` with every option that differs from its default."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

from rbve import algorithms

DATA = ("keep", "keep_seed", "side", "action")
OWN_WAY = ("algorithm", "algorithm_version", "options", "steps", "env")  # told below
WITHOUT_FLAG = ("eval_epsilon",)
WITH_VALUE = ("rescale",)  # true, false, or left to the memory


@cache
def defaults(algorithm: str) -> dict[str, Any]:
    """Of the algorithm's own settings; none of a user's file, which a report does not execute."""
    if algorithm not in algorithms.names():
        return {}
    known = algorithms.built_in(algorithm)
    return {**known.config()._asdict(), **asdict(known.options())}


def settings(job: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the algorithm that differ from its defaults."""
    usual = defaults(job["spec"]["algorithm"])
    own = {**job["config"], **job["spec"]["options"]}
    return {name: value for name, value in own.items() if usual.get(name) != value}


def command(job: Mapping[str, Any]) -> str:
    """A line for a shell; ValueError where `rbve train` has no flag for what the run did."""
    return shlex.join(["rbve", "train", job["data"]["path"], *arguments(job)])


def arguments(job: Mapping[str, Any]) -> Iterator[str]:
    from rbve.training.spec import DataRef, Job, Spec

    spec = job["spec"]
    # Some defaults depend on the memory, which itself is to be told.
    usual = {**asdict(Spec(steps=spec["steps"], memory=spec.get("memory", 0))), "memory": 0}
    for name in WITHOUT_FLAG:
        if spec[name] != usual[name]:
            raise ValueError(f"`rbve train` has no flag for {name}={spec[name]}")
    yield from ("--algorithm", spec["algorithm"])
    for name, value in settings(job).items():
        yield from ("--set", f"{name}={written(value)}")
    if spec["steps"] != Spec().steps:
        yield from ("--steps", str(spec["steps"]))
    yield from ("--env", spec["env"] or "none")
    yield from differing(job["data"], DATA, asdict(DataRef("")))
    flags = [name for name in usual if name not in (*OWN_WAY, *WITHOUT_FLAG)]
    yield from differing(spec, flags, usual)
    own = asdict(Job(DataRef(""), Spec(steps=spec["steps"])))
    yield from differing(job, ("learning_rate", "target_period", "seed"), own)


def differing(
    own: Mapping[str, Any], names: Iterable[str], usual: Mapping[str, Any]
) -> Iterator[str]:
    for name in names:
        value = own.get(name, usual[name])  # rows of earlier versions lack what came later
        if value == usual[name] or (isinstance(value, list) and tuple(value) == usual[name]):
            continue
        flag = f"--{name.replace('_', '-')}"
        if name in WITH_VALUE:
            yield from (flag, str(value))
        elif isinstance(value, bool):
            yield flag if value else flag.replace("--", "--no-", 1)
        elif isinstance(value, list):
            yield from (flag, *map(str, value))
        else:
            yield from (flag, written(value))


def written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value) if isinstance(value, float) else str(value)
    if "," in text:
        raise ValueError(f"`rbve train` reads a comma in {text!r} as several settings")
    return text
