"""Folder or glob of logs in many files: CSV or Parquet, read one after another as one log.

Files go in the order of their names and have the same columns. An episode may go on in the next
file. Folders and globs of native stores are read as one dataset too.
"""

import glob
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from rbve.data.dataset import OPTIONAL_COLUMNS, Dataset
from rbve.data.features import Feature, Features
from rbve.data.formats import csv, native, parquet
from rbve.data.logs import LogOptions, read_log
from rbve.data.logs.resolve import Log, Own
from rbve.data.logs.roles import Roles
from rbve.data.source import OnFault, Report, Source, parts_of, refuse

Options = LogOptions
_LOGS = (csv, parquet)
# What stores have in common that are one dataset.
_FACTS: dict[str, Callable[[Dataset], Any]] = {
    "actions": lambda data: data.actions,
    "observations": lambda data: (data.obs_shape, data.obs.dtype),
    "columns": lambda data: [name for name in OPTIONAL_COLUMNS if getattr(data, name) is not None],
    "features": lambda data: data.features and [_meaning(each) for each in data.features.columns],
}


def recognises(path: Path) -> bool:
    if (path / native.MANIFEST).is_file():
        return False
    files = _files(path)
    return any(files and all(map(kind.recognises, files)) for kind in (*_LOGS, native))


def _files(path: Path) -> list[Path]:
    """In the order of their names; hidden ones and those that begin with _ are not data."""
    if path.is_dir():
        found = list(path.iterdir())
    elif glob.has_magic(str(path)):
        found = [Path(each) for each in glob.glob(str(path), recursive=True)]
    else:
        return []
    return sorted(each for each in found if not each.name.startswith((".", "_")))


def read(path: Path, options: LogOptions | None = None, on_fault: OnFault = refuse) -> Source:
    files, options = _files(path), options or LogOptions()
    if not files:
        raise ValueError(f"{path}: no file there; give a folder of CSV or Parquet files, or a glob")
    kind = _kind(path, files)
    if kind is native:
        if options != LogOptions():
            raise ValueError(f"{path}: stores say what their columns are; leave the names out")
        return _stores(files)
    report = Report(path, on_fault)
    logs = [kind.open_log(file, options, Report(file, on_fault)) for file in files]
    return read_log(Chain(path, logs, report), options, report)


def _kind(path: Path, files: Sequence[Path]) -> ModuleType:
    for kind in (*_LOGS, native):
        fit = [file for file in files if kind.recognises(file)]
        if len(fit) == len(files):
            return kind
        if fit:
            other = next(file for file in files if file not in fit)
            raise ValueError(
                f"{path}: holds {other.name} beside {fit[0].name}; shards are files of one kind, "
                f"so choose them by a glob such as '{path / ('*' + fit[0].suffix)}'"
            )
    raise ValueError(f"{path}: {files[0].name} is no CSV, Parquet or native store")


class Chain(Log):
    """Logs of the same columns, one after another, as one."""

    def __init__(self, path: Path, logs: Sequence[Log], report: Report) -> None:
        first = logs[0]
        self.path, self.logs, self.report = path, logs, report
        self.format, self.names, self.typed = first.format, first.names, first.typed
        self.types, self.shape, self.own = first.types, first.shape, _agreed(logs)
        self.notes = list(dict.fromkeys(note for log in logs for note in log.notes))
        self.total = sum(log.total for log in logs)
        self._done = 0  # of what position() counts, in logs read to their end
        self._current: Log | None = None
        # Of texts known only of the logs that were read.
        self.starts = [0, *accumulate(log.total for log in logs[:-1])] if self.typed else []
        for log in logs[1:]:
            self._check(log)
        report.place, report.parts = self._place, [log.report for log in logs]

    def _check(self, log: Log) -> None:
        first = self.logs[0]
        if set(log.names) != set(self.names):
            odd = sorted(set(log.names) ^ set(self.names))[0]
            has, lacks = (log, first) if odd in log.names else (first, log)
            self.report.fatal(
                "missing column",
                f"{has.path.name} has a column {odd!r} and {lacks.path.name} has not; all files "
                "have the same columns, so export them alike or choose some by a glob",
            )
        for name in self.names if self.typed else ():
            if log.types[name] != self.types[name]:
                self.report.fatal(
                    "mixed types",
                    f"column {name!r} is {log.types[name]} in {log.path.name} and "
                    f"{self.types[name]} in {first.path.name}; write it with one type",
                )

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        starts, self._done, rows = list[int](), 0, 0
        for log in self.logs:
            self._current = log
            starts.append(rows)
            if len(starts) > len(self.starts):
                self.starts = starts
            for batch in log.batches(columns):
                yield batch
                rows += len(batch)
            self._done += log.total
            self._current = None

    def position(self) -> int:
        return self._done + (0 if self._current is None else self._current.position())

    def _place(self, row: int) -> str:
        index = bisect_right(self.starts, row) - 1
        log = self.logs[index]
        return f"{log.path.name}, {log.report.place(row - self.starts[index])}"

    # Of texts, all files share what their columns turned out to hold.

    def begin(self, roles: Roles) -> None:
        for log in self.logs:
            log.begin(roles)
            log.follow(self.logs[0])

    def numbers(self, name: str, column: pa.Array, first: int) -> pa.Array | None:
        return self.logs[0].numbers(name, column, first)

    def settle(self, report: Report) -> None:
        self.logs[0].settle(report)
        self.types = self.logs[0].types
        for log in self.logs:
            log.types = self.types

    def cast(self, name: str, texts: pa.Array) -> pa.Array:
        return self.logs[0].cast(name, texts)


def _agreed(logs: Sequence[Log]) -> Own | None:
    """What all say of themselves, if they say the same."""
    own = logs[0].own
    for log in logs:
        if (
            own is None
            or log.own is None
            or own._replace(provenance={}) != log.own._replace(provenance={})
        ):
            return None
    return own


def _stores(paths: Sequence[Path]) -> Source:
    """Native stores, one after another."""
    opened = [native.open_store(path) for path in paths]
    first = opened[0]
    for path, each in zip(paths, opened, strict=True):
        for what, of in _FACTS.items():
            if of(each) != of(first):
                raise ValueError(
                    f"{path}: has other {what} than {paths[0]}, so they are not one dataset; "
                    "convert the logs they are of together"
                )
    features = _pooled(opened)
    provenance = {**first.provenance, "shards": [each.provenance for each in opened]}
    sources = [parts_of(each) for each in opened]

    def parts() -> Iterator[Dataset]:
        for source in sources:
            for part in source.parts:
                yield replace(part, features=features, provenance=provenance)

    rows = sum(source.total for source in sources)
    return Source(parts(), rows, lambda: sum(source.position() for source in sources))


def _meaning(feature: Feature) -> Feature:
    """Without the figures, which differ from store to store."""
    plain = Feature(feature.name)
    figures = {name: getattr(plain, name) for name in ("mean", "scale", "low", "high")}
    return replace(feature, **figures)


def _pooled(stores: Sequence[Dataset]) -> Features | None:
    """Features with the mean, deviation and range of all decisions together."""
    if stores[0].features is None:
        return None
    weights = np.array([store.num_transitions for store in stores], np.float64)
    weights /= weights.sum()
    columns = zip(*(store.features.columns for store in stores if store.features), strict=True)
    return Features(tuple(_pool(each, weights) for each in columns))


def _pool(columns: tuple[Feature, ...], weights: np.ndarray) -> Feature:
    if columns[0].kind == "category" or len(set(columns)) == 1:
        return columns[0]
    means, scales = (np.array([getattr(c, n) for c in columns]) for n in ("mean", "scale"))
    mean = float(weights @ means)
    variance = float(weights @ (scales**2 + (means - mean) ** 2))
    low, high = min(column.low for column in columns), max(column.high for column in columns)
    return replace(columns[0], mean=mean, scale=math.sqrt(variance), low=low, high=high)
