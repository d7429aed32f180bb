"""Runs grouped into problems and methods.

A problem is an environment and a kind of data; a method is an algorithm with those settings that
differ between its runs on the problem. The runs of a method differ in dataset and seed.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rbve.evaluation import metric
from rbve.report import labels, statistics
from rbve.report.statistics import Estimate
from rbve.rows import Run

# How often is measured does not make a method; the network's seed and its data are its members.
_NOT_A_SETTING = {"env", "every", "eval_episodes", "legal"}


@dataclass(frozen=True)
class Method:
    """Runs of one algorithm with equal settings on one problem."""

    algorithm: str
    name: str  # for display, unique within the problem
    settings: dict[str, Any]  # those that differ from other runs of the algorithm
    colour: str
    dash: int  # line style, tells settings of one algorithm among others apart
    emphasised: bool
    runs: tuple[Run, ...]

    @property
    def n(self) -> int:
        return len(self.runs)

    @property
    def diverged(self) -> int:
        return sum(run.last("diverged_at") is not None for run in self.runs)

    def finals(self, measure: str) -> list[float | None]:
        return [run.last(f"final/{measure}") for run in self.runs]

    @cached_property
    def datasets(self) -> list[str]:
        """That of each run."""
        return [run.replicate for run in self.runs]

    def by_dataset(self, measure: str) -> dict[str, list[float]]:
        """Finite final figures of the runs on each dataset that has any."""
        known: dict[str, list[float]] = {}
        for dataset, value in zip(self.datasets, self.finals(measure), strict=True):
            if value is not None and math.isfinite(value):
                known.setdefault(dataset, []).append(value)
        return known

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Final figures of every metric that tables show."""
        every = ((name, self.finals(name)) for name in metric.tabulated())
        return {name: statistics.estimate(values, self.datasets) for name, values in every}

    @cached_property
    def train_loss(self) -> Estimate:
        return statistics.estimate((run.last("train/loss") for run in self.runs), self.datasets)

    @cached_property
    def curve(self) -> list[tuple[int, Estimate]]:
        """Return at the steps all runs were evaluated at."""
        return self.curve_of("return")

    def curve_of(self, measure: str) -> list[tuple[int, Estimate]]:
        """A figure at the steps at which all runs that have it were measured.

        A diverged run ended early with its last finite weights, so its last figure stands.
        """
        curves, datasets = [], []
        for run in self.runs:
            rows = [row for row in run.rows if row.metric == measure and math.isfinite(row.value)]
            if rows:
                ended = run.last("diverged_at") is not None
                curves.append(({row.step: row.value for row in rows}, ended))
                datasets.append(run.replicate)
        points = []
        for step in sorted({step for curve, _ in curves for step in curve}):
            values = [
                curve[max(curve)] if ended and step > max(curve) else curve.get(step)
                for curve, ended in curves
            ]
            if None not in values:
                points.append((step, statistics.estimate(values, datasets)))
        return points


@dataclass(frozen=True)
class Problem:
    env: str | None
    label: str  # unique within the report
    methods: tuple[Method, ...]

    @property
    def runs(self) -> list[Run]:
        return [run for method in self.methods for run in method.runs]

    @cached_property
    def datasets(self) -> dict[str, dict[str, Any]]:
        """Facts by dataset, each dataset once however many runs it has."""
        return {run.replicate: run.facts for run in self.runs}

    @cached_property
    def references(self) -> dict[str, float]:
        """Known returns to compare with, each the mean over datasets."""
        values = {
            name: statistics.finite(facts.get(name) for facts in self.datasets.values())
            for name in labels.REFERENCES
        }
        return {name: float(np.mean(value)) for name, value in values.items() if len(value)}

    @property
    def reference_source(self) -> str | None:
        """Where the online reference comes from, if not from the agent that recorded."""
        known = [facts.get("reference_source") for facts in self.datasets.values()]
        return next((source for source in known if source is not None), None)

    def named(self, names: Mapping[str, str]) -> dict[str, str]:
        """Names of references, true to what the online one is here."""
        return {**names, "reference_return": labels.PROXY} if self.reference_source else dict(names)

    @property
    def clipped(self) -> bool:
        """Whether returns of the data are of clipped rewards, so that it has no references."""
        return any(facts.get("rewards") == "clipped" for facts in self.datasets.values())

    @property
    def evaluated(self) -> bool:
        return any(method.estimates["return"].n or method.curve for method in self.methods)

    @property
    def ranked(self) -> list[Method]:
        """Methods with a final return, best mean first."""
        known = [method for method in self.methods if method.estimates["return"].n]
        return sorted(known, key=lambda method: -method.estimates["return"].mean)


def group(runs: Iterable[Run]) -> list[Problem]:
    problems: dict[tuple[str, str], list[Run]] = {}
    for run in distinct(runs):
        problems.setdefault((str(labels.env_of(run)), run.group), []).append(run)
    groups = list(problems.values())
    names = [labels.problem_label(members[0]) for members in groups]
    # Each once: with the place of their data, then its content, where need be.
    for more in (_place_of, lambda members: members[0].replicate):
        names = [
            f"{name} · {labels.one_line(more(members))}" if names.count(name) > 1 else name
            for name, members in zip(names, groups, strict=True)
        ]
    result = [
        Problem(labels.env_of(members[0]), name, tuple(_methods_of(members)))
        for name, members in zip(names, groups, strict=True)
    ]
    return sorted(result, key=lambda problem: labels.natural(problem.label))


def _place_of(runs: Sequence[Run]) -> str:
    """The folder that holds their data."""
    paths = sorted({str(run.field("path", "")) for run in runs})
    try:
        return os.path.commonpath(paths) or paths[0]
    except ValueError:  # relative and absolute ones
        return paths[0]


def distinct(runs: Iterable[Run]) -> list[Run]:
    """Each job once: the same run found by two paths must not count as two."""
    best: dict[str, Run] = {}
    for run in runs:
        if run.job not in best or len(run.rows) > len(best[run.job].rows):
            best[run.job] = run
    return list(best.values())


def _methods_of(runs: Sequence[Run]) -> list[Method]:
    by_algorithm: dict[str, list[Run]] = {}
    for run in runs:
        name = Path(str(run.field("algorithm", "unknown"))).stem
        by_algorithm.setdefault(name, []).append(run)
    strangers = sorted(set(by_algorithm) - set(labels.METHODS))
    known = labels.METHODS | {
        algorithm: (labels.one_line(algorithm), labels.OTHER_COLOURS[k % len(labels.OTHER_COLOURS)])
        for k, algorithm in enumerate(strangers)
    }
    methods = []
    for algorithm in sorted(by_algorithm, key=list(known).index):
        variants = split(by_algorithm[algorithm])
        alone = len(by_algorithm) == 1 and len(variants) > 1  # a sweep of settings
        for k, (settings, members) in enumerate(variants):
            name = labels.method_name(known[algorithm][0], algorithm, settings, members[0])
            # Further settings of one algorithm among others are lighter.
            white = 0.7 * k / max(len(variants), 3)
            style = (labels.mix(known[algorithm][1], "#ffffff", white), k)
            if alone:
                style = (labels.ramp(k / (len(variants) - 1)), 0)
            strong = algorithm == labels.EMPHASISED and not alone
            methods.append(Method(algorithm, name, settings, *style, strong, tuple(members)))
    return methods


def split(runs: Sequence[Run]) -> list[tuple[dict[str, Any], list[Run]]]:
    """Runs of one algorithm by the settings that differ between them."""
    settings = [_settings_of(run) for run in runs]
    names = list(dict.fromkeys(name for each in settings for name in each))
    differ = [name for name in names if len({_key_of(each.get(name)) for each in settings}) > 1]
    if "steps" in differ and "target_period" in differ:
        pairs = {_key_of([each.get("steps"), each.get("target_period")]) for each in settings}
        if len(pairs) == len({_key_of(each.get("steps")) for each in settings}):
            differ.remove("target_period")  # it follows from the number of steps
    groups: dict[str, tuple[dict[str, Any], list[Run]]] = {}
    for run, each in zip(runs, settings, strict=True):
        chosen = {name: each.get(name) for name in differ}
        groups.setdefault(_key_of(chosen), (chosen, []))[1].append(run)
    return sorted(groups.values(), key=lambda pair: labels.natural(labels.describe(pair[0])))


def _settings_of(run: Run) -> dict[str, Any]:
    parts = [run.spec.get(part, {}) for part in ("network", "sampling", "view", "evaluation")]
    own = {name: value for part in parts for name, value in part.items()}
    return {
        **run.spec.get("settings", {}),
        "file": str(run.field("algorithm", "")),  # of two files with one name
        **{each: run.field(each) for each in ("learning_rate", "algorithm_version", "td", "steps")},
        **{name: value for name, value in own.items() if name not in _NOT_A_SETTING},
        "target_period": run.field("target_period"),
        "holdout": run.field("holdout") or 0.0,  # older runs held out nothing
    }


def _key_of(content: Any) -> str:
    return json.dumps(content, sort_keys=True)
