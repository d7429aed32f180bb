"""Final figures of a study's runs, by kind of data, method and setting; and which setting counts.

A setting is chosen on other datasets than the one it is reported on: for each dataset the setting
with the best mean over the others. The paper's way, the best of all, stands beside it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from rbve.report.labels import has_memory
from rbve.rows import Run

LEARNING_RATE = "learning_rate"
SCORE = "normalised_return"
GAIN = "over_behaviour"  # how far the score is above that of the behaviour that made the data


@dataclass(frozen=True)
class Problem:
    """A kind of data; its datasets differ in the seed of the recording."""

    env: str
    noise: float
    epsilon: float | None  # of the expert or script recorded; None = an agent while it learned
    keep: float
    side: str
    action: str
    script: bool = False  # ε is that of a player written for the game

    @property
    def recording(self) -> str:
        """What was recorded, whatever is kept of it."""
        noise = f", noise {self.noise:g}" if self.noise else ""
        if self.epsilon is None:
            return self.env + noise
        if self.epsilon == 1:
            return f"{self.env}{noise}, uniform play"
        return f"{self.env}{noise}, {'script' if self.script else 'expert'} ε {self.epsilon:g}"

    @property
    def label(self) -> str:
        keep = f", {self.keep:.0%}" if self.keep != 0.1 else ""
        side = f", {self.side} mean" if self.side != "all" else ""
        action = f", {self.action} actions" if self.action != "chosen" else ""
        return f"{self.recording}{keep}{side}{action}"


@dataclass(frozen=True)
class Final:
    problem: Problem
    algorithm: str
    settings: str  # JSON of options, numbers and learning rate
    seed: int  # of the dataset
    values: dict[str, float] = field(hash=False)  # by measure
    job: str = ""
    memory: bool = False  # of the network
    # Evaluations over training: the share of the updates done, and values by measure.
    evaluations: tuple[tuple[float, dict[str, float]], ...] = field(default=(), hash=False)

    def setting(self, name: str) -> Any:
        return _parsed(self.settings).get(name)


Finals = Sequence[Final]


@cache
def _parsed(settings: str) -> dict[str, Any]:
    """Asked for very often, of few different settings; not to be changed."""
    return json.loads(settings)


def finals(runs: Iterable[Run]) -> list[Final]:
    """Runs that were evaluated to their end; n = 0: nothing to measure, not infinite."""
    found = []
    for run in runs:
        rows = [row for row in run.rows if row.metric.startswith("final/") and row.n]
        if rows:
            values = {row.metric.removeprefix("final/"): row.value for row in rows}
            found.append(replace(final_of(run, values), evaluations=_evaluations(run, values)))
    return found


def _evaluations(run: Run, measures: Iterable[str]) -> tuple[tuple[float, dict[str, float]], ...]:
    known = set(measures)
    by_step: dict[int, dict[str, float]] = {}
    for row in run.rows:
        if row.metric in known and row.n:
            by_step.setdefault(row.step, {})[row.metric] = row.value
    steps = run.field("steps") or max(by_step, default=1)
    ordered = sorted(by_step.items())
    return tuple((step / steps, _with_gain(values, run.facts)) for step, values in ordered)


def final_of(run: Run, values: dict[str, float]) -> Final:
    data, source = run.spec["data"], run.facts.get("source", {})
    behaviour = source.get("behaviour")
    settings = {**run.spec["settings"], LEARNING_RATE: run.field(LEARNING_RATE)}
    problem = Problem(
        env=str(run.field("env")),
        noise=source.get("noise") or 0.0,
        epsilon=source.get("epsilon") if behaviour in ("policy", "script") else None,
        **{name: data[name] for name in ("keep", "side", "action")},
        script=behaviour == "script",
    )
    kind = (problem, run.field("algorithm"), json.dumps(settings, sort_keys=True))
    measured = _with_gain(values, run.facts)
    return Final(*kind, data["keep_seed"], measured, run.job, has_memory(run))


def _with_gain(values: dict[str, float], facts: Mapping[str, Any]) -> dict[str, float]:
    behaviours = behaviour_score(facts)
    if behaviours is None or SCORE not in values:
        return values
    return values | {GAIN: values[SCORE] - behaviours}


def behaviour_score(facts: Mapping[str, Any]) -> float | None:
    """Where the data itself lies on the scale of scores; None where that is not known."""
    names = ("behaviour_return", "random_return", "reference_return")
    mean, low, high = (facts.get(name) for name in names)
    if mean is None or low is None or high is None or low == high:
        return None
    return 100.0 * (mean - low) / (high - low)


def by_setting(finals: Finals, measure: str) -> dict[str, dict[int, float]]:
    """setting -> dataset -> value, of the settings that ran on all datasets."""
    table: dict[str, dict[int, float]] = {}
    for each in finals:
        if measure in each.values:
            table.setdefault(each.settings, {})[each.seed] = each.values[measure]
    datasets = {seed for values in table.values() for seed in values}
    return {name: values for name, values in table.items() if set(values) == datasets}


def on_other_datasets(
    finals: Finals, measure: str = SCORE, choose_by: str = SCORE
) -> dict[int, float]:
    """dataset -> value of the setting that is best on the others; one setting needs no choice."""
    reported = by_setting(finals, measure)
    chosen = chosen_on_others(finals, measure, choose_by)
    return {seed: reported[setting][seed] for seed, setting in chosen.items()}


def chosen_on_others(
    finals: Finals, measure: str = SCORE, choose_by: str = SCORE
) -> dict[int, str]:
    """dataset -> the setting that is best on the others."""
    chosen_by, reported = by_setting(finals, choose_by), by_setting(finals, measure)
    settings = sorted(set(chosen_by) & set(reported))
    result = {}
    for seed in sorted(reported[settings[0]]) if settings else ():
        others = [other for other in chosen_by[settings[0]] if other != seed]
        means = [mean([chosen_by[each][o] for o in others]) if others else 0 for each in settings]
        result[seed] = settings[int(np.argmax(means))]
    return result


def best_of_all(finals: Finals, measure: str = SCORE, choose_by: str = SCORE) -> dict[int, float]:
    """dataset -> value of the setting with the best mean over all datasets, as the paper chose."""
    best = best_setting(finals, measure, choose_by)
    return {} if best is None else by_setting(finals, measure)[best]


def best_setting(finals: Finals, measure: str = SCORE, choose_by: str = SCORE) -> str | None:
    """The setting with the best mean over all datasets; None where none ran on all of them."""
    chosen_by = by_setting(finals, choose_by)
    settings = sorted(set(chosen_by) & set(by_setting(finals, measure)))
    return max(settings, key=lambda each: mean(list(chosen_by[each].values())), default=None)


def mean(values: Sequence[float]) -> float:
    """Values that are not finite, as of a diverged run, count as the worst."""
    return float(np.mean([value if np.isfinite(value) else -np.inf for value in values]))
