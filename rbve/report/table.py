"""The summary as lines of text, and from them rich tables, plain JSON and CSV."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from rbve.evaluation import metric
from rbve.evaluation.metric import Metric
from rbve.report import sheet
from rbve.report.figure import minus
from rbve.report.labels import CLIPPED, REFERENCES
from rbve.report.statistics import Estimate
from rbve.report.summary import Method, Problem

ABSENT = "–"


class _Line(NamedTuple):
    """One row of a problem's table; without a method it is a reference."""

    method: Method | None
    cells: tuple[str, ...]


def _shown_metrics(problem: Problem) -> list[Metric]:
    """Those of its table, in the order of their columns."""
    always, methods = problem.evaluated, problem.methods
    every = metric.tabulated().values()
    return [
        m for m in every if (m.always and always) or any(x.estimates[m.name].n for x in methods)
    ]


def _shows_loss(problem: Problem) -> bool:
    """Where nothing else tells how training went."""
    judged = metric.held_out_metrics().keys() & {each.name for each in _shown_metrics(problem)}
    return not problem.evaluated and not judged


def columns(problem: Problem) -> tuple[str, ...]:
    loss = ("last training loss",) if _shows_loss(problem) else ()
    headings = (each.heading for each in _shown_metrics(problem))
    return ("method", "n", *loss, *headings, "diverged")


def lines(problem: Problem) -> list[_Line]:
    places = return_places(problem)
    known = _shown_metrics(problem)
    result = []
    for method in problem.methods:
        loss = number(method.train_loss.mean) + share(method.train_loss, method)
        figures = (cell(each, method, places) for each in known)
        shown = (loss, *figures) if _shows_loss(problem) else figures
        cells = (method.name, str(method.n), *shown, str(method.diverged))
        result.append(_Line(method, cells))
    if not problem.evaluated:
        return result
    blank = ("",) * (len(columns(problem)) - 3)
    if problem.clipped:
        result.append(_Line(None, (CLIPPED, "", ABSENT, *blank)))
    for name, value in problem.references.items():
        words = problem.named(REFERENCES)[name]
        result.append(_Line(None, (words, "", number(value, places), *blank)))
    return result


def cell(shown: Metric, method: Method, return_decimals: int) -> str:
    """A metric of a method's runs, in the form the metric asks for."""
    estimate = method.estimates[shown.name]
    if shown.style == "percent":
        return percent(estimate.mean)
    if shown.style == "score":
        return number(estimate.mean, 1)
    if shown.statistic == "interval":
        places = return_decimals if shown.name == "return" else None
        return interval(estimate, places) + share(estimate, method)
    return number(estimate.median if shown.statistic == "median" else estimate.mean) + share(
        estimate, method
    )


def percent(value: float | None) -> str:
    return ABSENT if value is None or not math.isfinite(value) else f"{value:.1%}"


def share(estimate: Estimate, method: Method) -> str:
    """Say so where some of the runs lack a finite value."""
    return f" ({estimate.n} of {method.n})" if 0 < estimate.n < method.n else ""


def interval(estimate: Estimate, places: int | None = None) -> str:
    mean, low, high = (number(v, places) for v in (estimate.mean, estimate.low, estimate.high))
    return mean if estimate.low is None else f"{mean} [{low}, {high}]"


def interval_words(estimates: Iterable[Estimate]) -> str:
    """What the intervals of a table or figure are over; '' where there is none."""
    known = [each for each in estimates if each.over]
    several = [each for each in known if each.over == "datasets"]
    alone = [each for each in known if each.over == "runs"]
    parts = []
    if several:
        shared = any(each.n > each.datasets for each in several)
        first = ", the runs on each averaged first" if shared else ""
        parts.append(f"over {span(each.datasets for each in several)} datasets{first}")
    if alone:
        where = "of methods that ran on one dataset, " if several else ""
        runs = span(each.n for each in alone)
        parts.append(f"{where}over {runs} runs on one dataset, so it tells nothing of other data")
    return f"95% Student interval {'; '.join(parts)}" if parts else ""


def span(counts: Iterable[int]) -> str:
    """'3', or '2 to 5'."""
    return " to ".join(map(str, dict.fromkeys((min(known := list(counts)), max(known)))))


def return_places(problem: Problem) -> int:
    """Decimals that suit all returns of the problem, so that they compare at a glance."""
    estimates = [method.estimates["return"] for method in problem.methods]
    values = [value for each in estimates for value in (each.mean, each.low, each.high)]
    known = [abs(v) for v in (*values, *problem.references.values()) if v is not None]
    return decimals(max((v for v in known if math.isfinite(v)), default=0.0))


def decimals(scale: float) -> int:
    if scale >= 10 or scale == 0:
        return 0 if scale >= 100 else 1 if scale else 2
    return 2 if scale >= 0.1 else min(7, 1 - math.floor(math.log10(scale)))


def number(value: float | None, places: int | None = None) -> str:
    if value is None or not math.isfinite(value):
        return ABSENT
    size = abs(value)
    if size == 0 and places is None:
        return "0"
    if size >= 1e6 or 0 < size < 1e-6:
        mantissa, exponent = f"{value:.1e}".split("e")
        return minus(f"{mantissa}e{int(exponent)}")
    text = f"{value:,.{decimals(size) if places is None else places}f}"
    return minus(text) if text.strip("-0.") else text.removeprefix("-")


def table(problem: Problem) -> Table:
    """A rich table, to be printed by the caller."""
    words = interval_words(method.estimates["return"] for method in problem.methods)
    caption = Text(f"In brackets: {words}.") if words else None
    result = Table(
        title=Text(problem.label), title_justify="left", caption=caption, caption_justify="left"
    )
    for name in columns(problem):
        result.add_column(name, justify="left" if name == "method" else "right")
    for line in lines(problem):
        last = line.method is problem.methods[-1]
        style = "dim" if line.method is None else "bold" if line.method.emphasised else ""
        # Text and not markup: names may hold brackets.
        result.add_row(*map(Text, line.cells), style=style, end_section=last)
    return result


def as_json(problems: Sequence[Problem]) -> dict[str, Any]:
    """The figures of the tables, unrounded; None where undefined."""
    groups = [
        {
            "problem": problem.label,
            "env": problem.env,
            "runs": len(problem.runs),
            "datasets": len(problem.datasets),
            "references": {name: problem.references.get(name) for name in REFERENCES},
            "reference_source": problem.reference_source,
            "methods": [_method_json(method) for method in problem.methods],
        }
        for problem in problems
    ]
    return {"problems": groups}


def _method_json(method: Method) -> dict[str, Any]:
    estimates = {**method.estimates, "train_loss": method.train_loss}
    return {
        "method": method.name,
        "algorithm": method.algorithm,
        "settings": method.settings,
        "n": method.n,
        "diverged": method.diverged,
        **{
            measure: {name: None if v != v else v for name, v in each._asdict().items()}
            for measure, each in estimates.items()
        },
        "jobs": [run.job for run in method.runs],
    }


def as_csv(problems: Sequence[Problem]) -> str:
    """One line per method and per reference return."""
    measures = [*metric.tabulated(), "train_loss"]
    statistics = {f"{name}_{of}": (name, of) for name in measures for of in Estimate._fields}
    names = ["problem", "env", "kind", "method", "algorithm", "runs", "diverged", *statistics]
    csv_rows: list[dict[str, Any]] = []
    for problem in problems:
        common = {"problem": problem.label, "env": problem.env}
        for method in problem.methods:
            content = _method_json(method)
            line = {column: content[name][of] for column, (name, of) in statistics.items()}
            csv_rows.append({**common, **content, **line, "kind": "method", "runs": method.n})
        for name, value in problem.references.items():
            words = problem.named(REFERENCES)[name]
            csv_rows.append({**common, "kind": "reference", "method": words, "return_mean": value})
    return sheet.as_csv(names, ([line.get(name) for name in names] for line in csv_rows))
