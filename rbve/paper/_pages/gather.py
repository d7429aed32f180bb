"""A study as the page reads it: runs, their final results, the experiments they belong to."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rbve.paper import experiments
from rbve.paper.experiments import Outline
from rbve.paper.finals import SCORE, Final, Problem, best_of_all, by_setting, on_other_datasets
from rbve.paper.finals import finals as finals_of
from rbve.paper.results import Listed, listed, theory_runs
from rbve.report.chart import Point, Series
from rbve.report.labels import BEYOND, EMPHASISED, METHODS, OTHER_COLOURS, WITH_MEMORY, mix
from rbve.report.summary import distinct
from rbve.rows import Run

_ENVS = ("catch", "cartpole", "mountain_car")  # in the order of panels; others follow by name
_PAPER_SAMPLES = 64  # N = N' of IQN
OTHERS, BEST = "setting chosen on other datasets", "best setting of all, the paper's way"
_ONE = "one setting a method"  # where there was nothing to choose
COLOURS = {OTHERS: "#0072B2", BEST: "#D55E00"}
_RAW = "#F08A7C"  # R-BVE with raw weights at the paper's λ

_Key = TypeVar("_Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True)
class Study:
    """What was run, by experiment."""

    paths: tuple[Path, ...]
    runs: dict[str, Run]  # by job
    listed: dict[str, Listed]  # by experiment: the jobs it consists of, run or not
    finals: dict[str, Final]  # by job, of runs that were evaluated to their end

    @cached_property
    def jobs(self) -> set[str]:
        """Of all experiments."""
        return {job for each in self.listed.values() for job in each.jobs}

    @cached_property
    def longer(self) -> set[str]:
        """Jobs that tell about sizes alone, and not about methods."""
        return {job for each in self.listed.values() for job in each.longer} - self.jobs

    def of(self, experiment: str) -> list[Final]:
        """Without those that were trained longer; in a stable order."""
        jobs = sorted(self.listed[experiment].jobs) if experiment in self.listed else []
        return [self.finals[job] for job in jobs if job in self.finals]

    def progress(self, jobs: Collection[str]) -> tuple[int, int]:
        """Runs that are there, of how many."""
        return len(set(jobs) & set(self.finals)), len(jobs)

    def diverged(self, job: str) -> bool:
        return self.runs[job].last("diverged_at") is not None

    @cached_property
    def experiments(self) -> dict[str, Outline]:
        """Those of the study that this version knows, then those of users' files."""
        names = [name for name in experiments.names() if name in self.listed]
        known = {name: experiments.load(name) for name in names}
        own = {name: each for name, each in known.items() if isinstance(each, Outline)}
        files = {name: each.outline for name, each in self.listed.items() if name not in known}
        return own | {name: each for name, each in files.items() if each is not None}

    @cached_property
    def tuning(self) -> dict[str, list[Final]]:
        """experiment -> the runs of another by which its settings were to be frozen."""
        own = {name: getattr(each, "tuned", "") for name, each in self.experiments.items()}
        return {name: self.of(tuned) for name, tuned in own.items() if tuned}

    @cached_property
    def theory(self) -> dict[str, list[Run]]:
        """experiment -> runs, of those that need no data."""
        return theory_runs(self.paths)

    def facts(self, finals: Iterable[Final]) -> list[dict[str, Any]]:
        """Of the datasets behind some results, each once."""
        by_dataset = {each.seed: self.runs[each.job].facts for each in finals}
        return [by_dataset[seed] for seed in sorted(by_dataset)]


def gather(paths: Sequence[Path], runs: Sequence[Run]) -> Study:
    """The study below the paths, of runs that were read there."""
    own = {run.job: run for run in distinct(runs)}
    finals = {each.job: each for each in finals_of(own.values())}
    return Study(tuple(paths), own, listed(paths), finals)


class Shown(NamedTuple):
    """A method as the page names it."""

    name: str
    colour: str
    strong: bool
    place: tuple[int, str]  # in tables and figures

    def series(self, points: Sequence[Point], **look: Any) -> Series:
        """Variants of a method are drawn with another line."""
        usual = {"dash": 1 if self.place[1] else 0, "strong": self.strong}
        return Series(self.name, self.colour, tuple(points), **(usual | look))


def shown(final: Final) -> Shown:
    """The paper's raw weights make a method of their own, and so do fewer samples of IQN."""
    algorithm = final.algorithm
    name, colour = METHODS.get(algorithm, (algorithm, OTHER_COLOURS[0]))
    if final.memory:
        name = WITH_MEMORY.get(algorithm, name)
    place = list(METHODS).index(algorithm) if algorithm in METHODS else len(METHODS)
    if final.setting("normalise") == "none":
        strength = f"{final.setting('lam'):g}".lstrip("0")  # each by itself: the paper tried one
        colour = _RAW if strength == ".005" else mix(_RAW, "#000000", 0.4)
        return Shown(f"{name}, raw weights, λ {strength}", colour, False, (place, f"raw{strength}"))
    samples = final.setting("samples")
    if algorithm == "iqn" and samples != _PAPER_SAMPLES:
        name = f"IQN (N=N'={samples}, one setting)"
    if algorithm in BEYOND:
        name = f"{name} (not in the paper)"
    return Shown(name, colour, algorithm == EMPHASISED, (place, ""))


def by_method(finals: Iterable[Final]) -> dict[Shown, list[Final]]:
    return grouped(((shown(each), each) for each in finals), lambda method: method.place)


def by_problem(finals: Iterable[Final]) -> dict[Problem, list[Final]]:
    return grouped(((each.problem, each) for each in finals), problem_order)


def grouped(
    pairs: Iterable[tuple[_Key, Value]], order: Callable[[_Key], Any] | None = None
) -> dict[_Key, list[Value]]:
    """Values by their key; keys by `order`, else as they came."""
    groups: dict[_Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return {key: groups[key] for key in (sorted(groups, key=order) if order else groups)}


def problem_order(problem: Problem) -> tuple[Any, ...]:
    place = _ENVS.index(problem.env) if problem.env in _ENVS else len(_ENVS)
    epsilon = -1.0 if problem.epsilon is None else problem.epsilon
    return (place, problem.env, problem.noise, epsilon, problem.keep, problem.side, problem.action)


class Result(NamedTuple):
    """A method on a problem."""

    method: Shown
    others: dict[int, float]  # dataset -> score; empty where no setting ran on all datasets
    best: dict[int, float]
    finals: list[Final]


Results = Mapping[Problem, Sequence[Result]]


def results(finals: Iterable[Final]) -> dict[Problem, list[Result]]:
    return {
        problem: [
            Result(method, on_other_datasets(mine), best_of_all(mine), mine)
            for method, mine in by_method(own).items()
        ]
        for problem, own in by_problem(finals).items()
    }


def results_of(study: Study, name: str) -> dict[Problem, list[Result]]:
    """Of an experiment that compares methods; of others nothing."""
    return results(study.of(name)) if study.experiments[name].figure == "methods" else {}


def ways(results: Results) -> dict[str, str]:
    """Way a setting was chosen -> its words; where each method has but one, both are the same."""
    every = (each for own in results.values() for each in own)
    if any(len(by_setting(each.finals, SCORE)) > 1 for each in every):
        return {OTHERS: OTHERS, BEST: BEST}
    return {OTHERS: _ONE}
