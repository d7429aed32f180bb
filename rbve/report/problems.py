"""Sections of a page about runs: per problem a headline, a table and charts; then every run."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from markupsafe import Markup

from rbve.audit.verdict import counted
from rbve.envs.atari import REPORTED_ON, SCORES, TUNED_ON, game_of, reference
from rbve.evaluation.metric import Metric, held_out_metrics, registered
from rbve.report import statistics, table
from rbve.report.chart import Chart, Mark, Panel, Point, Series
from rbve.report.labels import SHORT_REFERENCES, one_line
from rbve.report.page import Section
from rbve.report.render import filter_table, part
from rbve.report.statistics import Estimate, Floats
from rbve.report.summary import Method, Problem
from rbve.report.words import best_words, headline, sizes, training

TITLE = "Results of learning from logged data"
_ABOUT = (
    "Each method learned a policy from recorded episodes alone; where an environment is at hand, "
    "the policy was then run in it, without further learning."
)

_DEFINITIONS = {
    "n": "Training runs of the method. They differ in dataset, in training seed, or in both.",
    "Final return": "Undiscounted sum of rewards per episode when the learned policy acts, mean of "
    "the last evaluations of a run, then mean over the runs on a dataset, then over datasets. In "
    "brackets: 95% Student interval of that mean over datasets, since runs on one dataset are not "
    "independent. Where all runs of a method share one dataset it is over those runs, and tells "
    "nothing of other data; a single run has none. It takes the means of datasets to be roughly "
    "normal, and may reach past what a return can be.",
    "Normalised": "100 × (return − random) / (online reference − random): 0 is a random policy, "
    "100 {hundred}.",
    "Over-estimation error": "Mean of max(Q − G, 0)² over the steps of evaluated episodes: Q is "
    "the value the network claims for the action taken, G the discounted return that followed. "
    "0 means no step was over-valued. Episodes cut by a time limit are left out, since their G is "
    "not known. The table gives the median over runs, since a single run can dwarf the rest.",
    "Value error": "Mean of Q − G over the same steps, with sign: positive where the network "
    "claims too much.",
    "Action gap": "Mean difference between the highest and the second-highest Q of a state.",
    "Held-out claim, error, RMS, gap": "Of episodes that did not train, where G is the discounted "
    "return that the log got from there: mean of Q − G for the policy's own choice (one that is "
    "better than the log may claim more), mean and root mean square of Q − G for the logged "
    "action, and action gap. Episodes that the log cuts short have no G and are left out of all "
    "but the last. None of them is the return of the policy; rbve ope estimates that.",
    "As logged, covered, log loss": "Of the same episodes: share of decisions in which the policy "
    "chooses as the log did; share of its choices that the training episodes took a few times at "
    "least in like states (regions of the audit); of cloning, mean of −log π(a) of logged "
    "actions, in nats.",
    "Diverged": "Runs whose gradients stopped being finite. They end there with their last finite "
    "weights, and those weights are evaluated.",
    "Behaviour, best, random, online": "Mean return of the recorded episodes, the best of them, a "
    "uniformly random policy, and {hundred}. Each is a "
    "mean over the datasets. Data that holds clipped rewards alone, as RL Unplugged's Atari data "
    "does, tells no returns that compare with those of the game.",
    "(2 of 3)": "Only so many runs have a finite value; the others are left out of that figure.",
}

# RL Unplugged tunes on 9 games and reports on 37 others, so the two are never mixed in silence.
_GAMES = (
    ("games that settings are tuned on", TUNED_ON),
    ("games that are reported on", REPORTED_ON),
    ("all of them", SCORES),
)
_ABOUT_GAMES = (
    "<p>Median over games of the mean normalised score, with its 95% bootstrap interval: of each "
    "game datasets are resampled, then the runs on each; with few it is too narrow. RL Unplugged "
    "tunes settings on the first list and reports on the second. A game on which a method has no "
    "score is missing from its median. Where a game has several kinds of data, all their datasets "
    "count; games cut short or otherwise sticky do not.</p>"
)


def about(problems: Sequence[Problem]) -> str:
    runs = sum(len(problem.runs) for problem in problems)
    size = f"{counted(runs, 'run')} on {counted(len(problems), 'problem')}"
    return str(Markup('{} <span class="muted">{}.</span>').format(_ABOUT, size))


def sections(problems: Sequence[Problem]) -> list[Section]:
    """Best on each problem, medians over Atari games, the problems, every run, definitions."""
    result = []
    if len(problems) > 1:
        link, columns = Markup('<a href="#p{}">{}</a>'), ("problem", "best mean return", "runs")
        rows = [
            (link.format(index, problem.label), best_words(problem), len(problem.runs))
            for index, problem in enumerate(problems, start=1)
        ]
        best = part("table", "Table: problems", columns, rows, kind="overview")
        result = [Section("problems", "Best on each problem", best), *_atari_games(problems)]
    result += [_section(problem, index) for index, problem in enumerate(problems, start=1)]
    words = {name: text.format(hundred=_hundred(problems)) for name, text in _DEFINITIONS.items()}
    meaning = Section("measures", "What the measures mean", part("definitions", words))
    return [*result, _every_run(problems), meaning]


def _hundred(problems: Sequence[Problem]) -> str:
    """What the online reference is on these problems."""
    own = "the best snapshot of the agent that learned online"
    sources = {each.reference_source for each in problems if "reference_return" in each.references}
    others = sorted(filter(None, sources))
    if not others:
        return own
    stands_in = f"another agent's score ({'; '.join(others)})"
    return f"{own}, or where the tables name it {stands_in}" if None in sources else stands_in


def _section(problem: Problem, index: int) -> Section:
    label, lines = problem.label, table.lines(problem)
    kinds = [
        "reference" if line.method is None else "main" if line.method.emphasised else "other"
        for line in lines
    ]
    cells, columns = [line.cells for line in lines], table.columns(problem)
    body = part(
        "problem",
        headline(problem),
        f"{sizes(problem)} {training(problem)}",
        Markup(part("table", f"Table: {label}", columns, cells, classes=kinds)),
        table.interval_words(each.estimates["return"] for each in problem.methods),
    )
    slug = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:60].strip("-") or "problem"
    return Section(f"p{index}", label, body, tuple(_charts(problem, f"{index}-{slug}")))


def _atari_games(problems: Sequence[Problem]) -> list[Section]:
    """One, where there are at least two games of the lists."""
    scores: dict[str, dict[str, list[Floats]]] = {}  # by method and game, of each dataset its runs'
    for problem in problems:
        for method in problem.methods if reference(problem.env) else ():
            if own := method.by_dataset("normalised_return"):
                known = scores.setdefault(method.name, {}).setdefault(game_of(problem.env), [])
                known += map(np.array, own.values())
    if len({game for known in scores.values() for game in known}) < 2:
        return []
    columns = ["method", *(f"{len(games)} {words}" for words, games in _GAMES)]
    rows = [
        (name, *(_median({game: own[game] for game in own if game in games}, len(games))
                 for _, games in _GAMES))
        for name, own in scores.items()
    ]  # fmt: skip
    medians = part("table", "Table: medians over games", columns, rows)
    return [Section("atari-games", "Median over Atari games", _ABOUT_GAMES + medians)]


def _median(scores: dict[str, list[Floats]], games: int) -> str:
    """'83.1 [75.0, 91.2] (35 games, 2 missing)'."""
    if not scores:
        return table.ABSENT
    median = statistics.interval(scores, statistics.median_of_tasks)
    middle = table.number(median.value, 1)
    if min(sum(map(len, datasets)) for datasets in scores.values()) > 1:
        middle += f" [{table.number(median.low, 1)}, {table.number(median.high, 1)}]"
    return f"{middle} ({counted(len(scores), 'game')}, {games - len(scores)} missing)"


def _charts(problem: Problem, name: str) -> Iterator[Chart]:
    """Those the problem has data for."""
    label, references = problem.label, problem.named(SHORT_REFERENCES)
    marks = {each: Mark(value, references[each]) for each, value in problem.references.items()}
    if methods := [method for method in problem.methods if method.curve]:
        band = _shown_as("band", [method.curve[-1][1] for method in methods])
        note = f"Line: mean return of {_count(methods)}{band}"
        if any(method.diverged for method in methods):
            note += "; dot: a run diverged there, its last return stands"
        offline = tuple(mark for each, mark in marks.items() if each != "reference_return")
        lines = tuple(_curve(method, method.curve) for method in methods)
        panel, title = Panel("", lines, offline), f"Learning curves: {label}"
        yield Chart(f"{name}-curves", title, f"{note}.", "lines", "updates", "return", (panel,))
    yield from _held_out(problem, name)
    if problem.ranked:
        bar = _shown_as("bar", [method.estimates["return"] for method in problem.methods])
        note = f"Dot: mean of {_count(problem.methods)}{bar}; faint: single runs."
        title, rows = f"Final returns: {label}", tuple(_row(m, "return") for m in problem.methods)
        axes = ("", "final return", (Panel("", rows, tuple(marks.values())),))
        yield Chart(f"{name}-returns", title, note, "rows", *axes, x_scale="category")
    if any(method.estimates["overestimation"].n for method in problem.methods):
        measured = [m for m in problem.methods if {*m.finals("overestimation")} - {None}]
        yield Chart(
            f"{name}-overestimation",
            f"Over-estimation error: {label}",
            f"Dot: median of {_count(measured)}; faint: single runs. Log scale that begins at 0.",
            kind="rows",
            x_label="",
            y_label="over-estimation error, mean of max(Q − G, 0)²",
            panels=(Panel("", tuple(_row(method, "overestimation") for method in measured)),),
            x_scale="category",
            y_scale="symlog",
        )


def _shown_as(what: str, estimates: Sequence[Estimate]) -> str:
    words = table.interval_words(estimates)
    return f"; {what}: {words}" if words else ""


def _count(methods: Sequence[Method]) -> str:
    runs = sorted({method.n for method in methods})
    if len(runs) == 1:
        return f"n = {counted(runs[0], 'run')} per method"
    return f"n = {runs[0]} to {runs[-1]} runs per method"


def _held_out(problem: Problem, name: str) -> Iterator[Chart]:
    """One chart, where episodes were held out: a panel for each of their figures."""
    panels, ends = [], list[Estimate]()
    for measure, metric in held_out_metrics().items():
        curves = [(method, method.curve_of(measure)) for method in problem.methods]
        ends += [curve[-1][1] for _, curve in curves if curve]
        lines = (_within(metric, _curve(method, curve)) for method, curve in curves if curve)
        if held := tuple(lines):
            panels.append(Panel(metric.label, held))
    if panels:
        band, title = _shown_as("band", ends), f"Held-out episodes: {problem.label}"
        note = f"Of episodes that did not train. Line: mean of {_count(problem.methods)}{band}."
        axes = ("updates", "", tuple(panels))
        yield Chart(f"{name}-heldout", title, note, "lines", *axes)


def _within(metric: Metric, series: Series) -> Series:
    """With intervals that keep to the values the metric can have."""
    low = 0.0 if metric.nonnegative else -math.inf
    high = 1.0 if metric.style == "percent" else math.inf
    points = tuple(
        point._replace(low=max(point.low, low), high=min(point.high, high))
        if point.low is not None and point.high is not None
        else point
        for point in series.points
    )
    return replace(series, points=points)


def _curve(method: Method, curve: Sequence[tuple[int, Estimate]]) -> Series:
    ends = [run.last("diverged_at") for run in method.runs]
    steps = [step for step, _ in curve]
    diverged = [min(steps, key=lambda step: abs(step - at)) for at in ends if at is not None]
    notes = {step: f"{counted(diverged.count(step), 'run')} diverged here" for step in diverged}
    points = tuple(
        Point(step, estimate.mean, estimate.low, estimate.high, estimate.n, notes.get(step, ""))
        for step, estimate in curve
    )
    style: Any = {"dash": method.dash, "strong": method.emphasised}
    return Series(method.name, method.colour, points, **style)


def _row(method: Method, measure: str) -> Series:
    """By the statistic of the metric."""
    name, estimate = method.name, method.estimates[measure]
    point = Point(name, estimate.mean, estimate.low, estimate.high, estimate.n)
    if registered()[measure].statistic == "median":
        point = Point(name, estimate.median, n=estimate.n)
    members = tuple((name, value) for value in method.finals(measure) if value is not None)
    return Series(name, method.colour, (point,), members, method.dash, strong=method.emphasised)


_COLUMNS = (
    *("problem", "method", "dataset", "seed", "final return", "over-estimation"),
    *("diverged at", "job"),  # the update; empty = it did not
)


def _every_run(problems: Sequence[Problem]) -> Section:
    every = [(p.label, m.name, run) for p in problems for m in p.methods for run in m.runs]
    rows, details = [], []
    for label, name, run in every:
        data, seed = one_line(str(run.field("path", ""))), run.field("seed")
        returned, over = run.last("final/return"), run.last("final/overestimation")
        ended = run.last("diverged_at")
        at = None if ended is None else int(ended)
        rows.append((label, name, data, seed, returned, over, at, one_line(run.job)))
        details.append({"specification": run.spec, "facts of the data": run.facts})
    words = "<p>Open a row for the specification of the run and the facts of its data.</p>"
    content = filter_table("every-run", _COLUMNS, rows, ("problem", "method"), "Every run", details)
    return Section("runs", "Every run", words + content)
