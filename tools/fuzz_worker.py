"""One process that reads mutated inputs and says of each how it went."""

from __future__ import annotations

import faulthandler
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from fuzz_inputs import Input, make
from fuzz_seeds import Seed, build

from rbve.data import Dataset, formats

MEMORY = 4 << 30  # bytes of address space a worker may take beyond what it starts with
GROWTH = 1 << 29  # bytes by which no small input may raise the peak of resident memory
OUTCOMES = ("read fine", "clean error", "finding")
KEPT = 3  # inputs saved of findings that look alike


class Options(NamedTuple):
    seed: int
    formats: tuple[str, ...]
    output: Path


class Shared(NamedTuple):
    """Memory that outlives a worker that crashes."""

    current: Any  # (workers,) number of the input being read, −1 before the first
    started: Any  # (workers,) when, by time.monotonic()
    counts: Any  # (workers * formats * past * outcomes,)
    stop: Any  # 1: no further input


class Finding(Exception):
    """Something other than a dataset or an error a user can act on."""


def slot(options: Options, worker: int, format: str, past: bool, outcome: str) -> int:
    index = worker * len(options.formats) + options.formats.index(format)
    return (index * 2 + past) * len(OUTCOMES) + OUTCOMES.index(outcome)


def scratch() -> Path:
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() else None))


def draw(seeds: list[Seed], options: Options, number: int) -> tuple[Seed, Input, Random]:
    """The input of this number, always the same one."""
    rng = Random(f"{options.seed}/{number}")
    format = rng.choice(options.formats)
    seed = rng.choice([seed for seed in seeds if seed.format == format])
    return seed, make(seed, rng), rng


def work(
    worker: int,
    numbers: range,
    options: Options,
    shared: Shared,
    seeds: list[Seed],
    folder: Path,
) -> None:
    log = open(options.output / f"worker-{worker}.log", "ab")  # noqa: SIM115 - until the end
    os.dup2(log.fileno(), 2)  # what libraries print about damaged files
    faulthandler.enable()
    warnings.simplefilter("error")
    for seed in seeds:
        put(folder / seed.name, seed.files)
        read_all(folder / seed.name / seed.path, seed.format)
    limit_memory()
    saved: dict[str, int] = {}
    for number in numbers:
        if shared.stop.value:
            return
        shared.started[worker] = time.monotonic()
        shared.current[worker] = number
        seed, made, rng = draw(seeds, options, number)
        outcome, error = judge(folder / seed.name, seed, made, rng)
        shared.counts[slot(options, worker, seed.format, made.past, outcome)] += 1
        if error is not None:
            text = "".join(traceback.format_exception(error))
            key = f"{seed.format} {signature(error)}"
            saved[key] = saved.get(key, 0) + 1
            save(options, number, seed, made, key, text, keep=saved[key] <= KEPT)


def limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def judge(folder: Path, seed: Seed, made: Input, rng: Random) -> tuple[str, BaseException | None]:
    """(outcome, what is wrong); the folder's files are those of the seed before and after."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    put(folder, made.changes)
    try:
        read_all(folder / seed.path, seed.format, named=rng.random() < 0.9)
        outcome = "read fine"
    except (ValueError, ImportError) as error:
        if (wrong := unclean(error, folder)) is not None:
            return "finding", wrong
        outcome = "clean error"
    except Exception as error:
        return "finding", error
    finally:
        put(folder, {name: seed.files.get(name) for name in made.changes})
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if grown * 1024 > GROWTH:
        return "finding", Finding(f"took {grown // 1024} MB of memory")
    return outcome, None


def put(folder: Path, files: Mapping[str, bytes | None]) -> None:
    for name, data in files.items():
        if data is None:
            (folder / name).unlink(missing_ok=True)
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)


def read_all(path: Path, format: str, named: bool = True) -> None:
    source = formats.read(path, format if named else None)
    for part in source.parts:
        check_part(part)
    source.position()
    if format == "native":
        check_part(formats.load(path, format))


def unclean(error: Exception, folder: Path) -> Exception | None:
    """An error of a kind a library raised, or one that does not say where, is no clean one."""
    if type(error) not in (ValueError, ImportError, ModuleNotFoundError):
        return error
    if str(folder) not in str(error) and isinstance(error, ValueError):
        return Finding(f"an error that names no file: {error}").with_traceback(error.__traceback__)
    if "\n" in str(error):
        return Finding(f"several lines: {error!r}").with_traceback(error.__traceback__)
    return None


def check_part(part: Dataset) -> None:
    """Refuse columns that do not fit together, and touch every value."""
    rows, episodes = len(part.action), part.num_episodes
    lengths = np.diff(part.offsets)
    sound = part.offsets[0] == 0 and part.offsets[-1] == rows and episodes > 0
    sound &= bool((lengths >= 2).all())
    for name in ("obs", "action", "reward", "executed", "legal", "propensity"):
        column = getattr(part, name)
        sound &= column is None or len(np.array(column)) == rows
    sound &= part.legal is None or part.legal.shape == (rows, part.num_actions)
    for name in ("terminated", "complete", "episode_return", "final_observed"):
        column = getattr(part, name)
        sound &= column is None or len(column) == episodes
    if part.features is not None:
        sound &= part.obs_shape == (len(part.features.columns),)
    if not sound or part.action.max() >= part.num_actions:
        raise Finding("a part whose columns do not fit together")


def signature(error: BaseException) -> str:
    """The same for findings that look alike."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "rbve" in frame.filename] or frames[-1:]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} at {place}"


def save(
    options: Options, number: int, seed: Seed, made: Input, key: str, text: str, keep: bool = True
) -> None:
    """One line for the table of findings, and the input's files."""
    with open(options.output / "findings.txt", "a") as file:
        file.write(f"{number}\t{key}\n")
    if keep:
        target = options.output / f"{number}-{seed.name}"
        shutil.rmtree(target, ignore_errors=True)
        put(target, {**seed.files, **made.changes})
        (target / "ERROR.txt").write_text(f"input {number}, {key}\n\n{text}", errors="replace")


def repeat(number: int, options: Options) -> int:
    """Read one input in this process, with nothing caught."""
    folder = scratch()
    try:
        seed, made, rng = draw(build(folder), options, number)
        put(folder / seed.name, made.changes)
        sys.stdout.write(f"{seed.name}: {', '.join(made.changes)}\n")
        read_all(folder / seed.name / seed.path, seed.format, named=rng.random() < 0.9)
        return 0
    finally:
        shutil.rmtree(folder)
