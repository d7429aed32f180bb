"""What a metric is, and which there are: one file each in metrics/ and offline/.

A file's presence is its registration: its figures then appear in result rows, in `rbve evaluate`,
in tables, pages and CSV files. Nothing here needs JAX, so that reports read the words alone.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

from rbve import registry

METRICS, OFFLINE = "rbve.evaluation.metrics", "rbve.evaluation.offline"


@dataclass(frozen=True)
class Metric:
    """The words of a metric, and how it is summarised."""

    name: str  # in result rows
    label: str  # in figures
    heading: str  # of its column in tables
    better: Literal["higher", "lower", "zero", "neither"]
    values: bool = False  # only for algorithms that learn values
    episodes: Literal["all", "terminated"] = "all"  # those whose mean is the figure
    statistic: Literal["mean", "median", "interval"] = "mean"  # over runs, in tables
    style: Literal["number", "score", "percent"] = "number"  # score: one decimal
    table: bool = True  # has a column in tables, pages and CSV files
    always: bool = False  # the column is there where no run has the figure
    logarithmic: bool = False  # it spans powers of ten: centres are taken of ±log₁₀(1 + |x|)
    nonnegative: bool = False
    order: int = 70  # its place among the others


def modules(package: str) -> list[ModuleType]:
    """The files of METRICS or OFFLINE in the order of their metrics."""
    root = importlib.import_module(package)
    names = {name for folder in root.__path__ for name in registry.names(Path(folder))}
    loaded = [importlib.import_module(f"{package}.{name}") for name in names]
    return sorted(loaded, key=lambda module: (module.METRIC.order, module.METRIC.name))


def registered() -> dict[str, Metric]:
    """All metrics by name, in their order."""
    found = [module.METRIC for package in (METRICS, OFFLINE) for module in modules(package)]
    return {each.name: each for each in sorted(found, key=lambda each: (each.order, each.name))}


def tabulated() -> dict[str, Metric]:
    """Those with a column in tables, pages and CSV files."""
    return {name: each for name, each in registered().items() if each.table}
