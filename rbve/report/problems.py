"""Sections of a page about runs: per problem a headline, a table and charts; then every run."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from markupsafe import Markup

from rbve.evaluation.metric import registered
from rbve.report import atari, table
from rbve.report.chart import Chart, Mark, Panel, Point, Series
from rbve.report.filter_table import filter_table
from rbve.report.labels import SHORT_REFERENCES, one_line
from rbve.report.page import Section
from rbve.report.render import render
from rbve.report.render import table as render_table
from rbve.report.statistics import Estimate
from rbve.report.summary import Method, Problem
from rbve.report.words import best_words, headline, plural, sizes, training

TITLE = "Results of learning from logged data"
ABOUT = (
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
    "Diverged": "Runs whose gradients stopped being finite. They end there with their last finite "
    "weights, and those weights are evaluated.",
    "Behaviour, best, random, online": "Mean return of the recorded episodes, the best of them, a "
    "uniformly random policy, and {hundred}. Each is a "
    "mean over the datasets. Data that holds clipped rewards alone, as RL Unplugged's Atari data "
    "does, tells no returns that compare with those of the game.",
    "(2 of 3)": "Only so many runs have a finite value; the others are left out of that figure.",
}


def about(problems: Sequence[Problem]) -> str:
    runs = sum(len(problem.runs) for problem in problems)
    size = f"{plural(runs, 'run')} on {plural(len(problems), 'problem')}"
    return str(Markup('{} <span class="muted">{}.</span>').format(ABOUT, size))


def sections(problems: Sequence[Problem]) -> list[Section]:
    found = [section(problem, index) for index, problem in enumerate(problems, start=1)]
    if len(problems) > 1:
        found.insert(0, Section("problems", "Best on each problem", overview(problems)))
        found[1:1] = atari.sections(problems)
    return [*found, _every_run(problems), measures(problems)]


def measures(problems: Sequence[Problem]) -> Section:
    words = {name: text.format(hundred=hundred(problems)) for name, text in _DEFINITIONS.items()}
    return Section("measures", "What the measures mean", render("definitions.jinja", words=words))


def hundred(problems: Sequence[Problem]) -> str:
    """What the online reference is on these problems."""
    own = "the best snapshot of the agent that learned online"
    sources = {each.reference_source for each in problems if "reference_return" in each.references}
    others = sorted(filter(None, sources))
    if not others:
        return own
    stands_in = f"another agent's score ({'; '.join(others)})"
    return f"{own}, or where the tables name it {stands_in}" if None in sources else stands_in


def section(problem: Problem, index: int) -> Section:
    body = render(
        "problem.jinja",
        sentences=headline(problem),
        size=f"{sizes(problem)} {training(problem)}",
        table=_html_table(problem),
        brackets=table.interval_words(each.estimates["return"] for each in problem.methods),
    )
    name = f"{index}-{slug(problem.label)}"
    return Section(f"p{index}", problem.label, body, charts(problem, name))


def slug(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:60].strip("-") or "problem"


def overview(problems: Sequence[Problem]) -> str:
    link = Markup('<a href="#p{}">{}</a>')
    rows = [
        (link.format(index, problem.label), best_words(problem), len(problem.runs))
        for index, problem in enumerate(problems, start=1)
    ]
    columns = ("problem", "best mean return", "runs")
    return render_table("Table: problems", columns, rows, kind="overview")


def _html_table(problem: Problem) -> str:
    known = table.lines(problem)
    kinds = [
        "reference" if line.method is None else "main" if line.method.emphasised else "other"
        for line in known
    ]
    rows, label = [line.cells for line in known], f"Table: {problem.label}"
    return render_table(label, table.columns(problem), rows, classes=kinds)


def charts(problem: Problem, name: str) -> tuple[Chart, ...]:
    """Those the problem has data for."""
    found = []
    if any(method.curve for method in problem.methods):
        found.append(curves(problem, name))
    if problem.ranked:
        found.append(_final_returns(problem, name))
    if any(method.estimates["overestimation"].n for method in problem.methods):
        found.append(overestimation(problem, name))
    return tuple(found)


def curves(problem: Problem, name: str) -> Chart:
    methods = [method for method in problem.methods if method.curve]
    last = [method.curve[-1][1] for method in methods]
    note = f"Line: mean return of {count(methods)}{_shown_as('band', last)}"
    if any(method.diverged for method in methods):
        note += "; dot: a run diverged there, its last return stands"
    return Chart(
        name=f"{name}-curves",
        title=f"Learning curves: {problem.label}",
        note=f"{note}.",
        kind="lines",
        x_label="updates",
        y_label="return",
        panels=(Panel("", tuple(curve(m) for m in methods), marks(problem, online=False)),),
    )


def _shown_as(what: str, estimates: Sequence[Estimate]) -> str:
    words = table.interval_words(estimates)
    return f"; {what}: {words}" if words else ""


def curve(method: Method) -> Series:
    ends = [run.last("diverged_at") for run in method.runs]
    steps = [step for step, _ in method.curve]
    diverged = [min(steps, key=lambda step: abs(step - at)) for at in ends if at is not None]
    notes = {step: f"{plural(diverged.count(step), 'run')} diverged here" for step in diverged}
    points = (
        Point(step, found.mean, found.low, found.high, found.n, notes.get(step, ""))
        for step, found in method.curve
    )
    return series(method, points)


def _final_returns(problem: Problem, name: str) -> Chart:
    methods = problem.methods
    return Chart(
        name=f"{name}-returns",
        title=f"Final returns: {problem.label}",
        note=f"Dot: mean of {count(methods)}"
        f"{_shown_as('bar', [m.estimates['return'] for m in methods])}; faint: single runs.",
        kind="rows",
        x_label="",
        y_label="final return",
        panels=(Panel("", tuple(row(m, "return") for m in methods), marks(problem, online=True)),),
        x_scale="category",
    )


def overestimation(problem: Problem, name: str) -> Chart:
    methods = [m for m in problem.methods if any(v is not None for v in m.finals("overestimation"))]
    return Chart(
        name=f"{name}-overestimation",
        title=f"Over-estimation error: {problem.label}",
        note=f"Dot: median of {count(methods)}; faint: single runs. Log scale that begins at 0.",
        kind="rows",
        x_label="",
        y_label="over-estimation error, mean of max(Q − G, 0)²",
        panels=(Panel("", tuple(row(m, "overestimation") for m in methods)),),
        x_scale="category",
        y_scale="symlog",
    )


def row(method: Method, measure: str) -> Series:
    """By the statistic of the metric."""
    name, found = method.name, method.estimates[measure]
    point = Point(name, found.mean, found.low, found.high, found.n)
    if registered()[measure].statistic == "median":
        point = Point(name, found.median, n=found.n)
    return series(method, [point], ((name, v) for v in method.finals(measure) if v is not None))


def series(
    method: Method, points: Iterable[Point], members: Iterable[tuple[str, float]] = ()
) -> Series:
    found = Series(method.name, method.colour, tuple(points), tuple(members), method.dash)
    return replace(found, strong=method.emphasised)


def marks(problem: Problem, online: bool) -> tuple[Mark, ...]:
    return tuple(
        Mark(value, problem.named(SHORT_REFERENCES)[name])
        for name, value in problem.references.items()
        if online or name != "reference_return"
    )


def count(methods: Sequence[Method]) -> str:
    numbers = sorted({method.n for method in methods})
    if len(numbers) == 1:
        return f"n = {plural(numbers[0], 'run')} per method"
    return f"n = {numbers[0]} to {numbers[-1]} runs per method"


COLUMNS = (
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
    content = filter_table("every-run", COLUMNS, rows, ("problem", "method"), "Every run", details)
    return Section("runs", "Every run", words + content)
