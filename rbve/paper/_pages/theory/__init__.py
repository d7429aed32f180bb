"""The theory experiments: their question, the answer in numbers, the figures.

A file of this folder has the name of the module in rbve.paper.theory whose runs it shows, and holds

    answer(runs)    a sentence or two, with numbers
    figures(runs)   a Chart or Figure each
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rbve import registry
from rbve.paper import experiments
from rbve.paper._pages import render
from rbve.paper._pages.gather import Study
from rbve.report import statistics
from rbve.report.chart import Chart, Point, figure_of
from rbve.report.page import Section
from rbve.rows import Run

Z = 1.959964  # 95% of a normal distribution
_FILES = registry.Registry("page of theory", __name__, __file__)


def page_of(module: str) -> Any:
    """The file that shows the runs of a theory module; None where there is none."""
    return _FILES.load(module) if module in _FILES.names() else None


def sections(study: Study) -> list[Section]:
    made = []
    for name in (each for each in experiments.names() if each in study.theory):
        experiment, runs = experiments.load(name), study.theory[name]
        if not isinstance(experiment, experiments.Theory):
            continue
        page, summary = page_of(experiment.module), experiments.summary(name)
        body = render(
            "theory.jinja",
            question=runs[0].facts.get("question", summary),
            paper=experiment.paper,
            count=len(runs),
            answer=page.answer(runs) if page else "",
        )
        title, drawn = summary.partition(":")[0], tuple(page.figures(runs)) if page else ()
        made.append(Section(f"theory-{name}", f"Theory: {title.lower()}", body, drawn, short=title))
    return made


def pictures(module: str, runs: Sequence[Run]) -> dict[str, bytes]:
    """PNG files of all figures of a theory experiment, by their names."""
    from rbve.report.figure import png

    page = page_of(module)
    drawn = page.figures(runs) if page else []
    figures = [figure_of(each) if isinstance(each, Chart) else each for each in drawn]
    return {each.name.removeprefix("theory-"): png(each) for each in figures}


def estimated(x: float, values: Iterable[float]) -> Point:
    """Mean with its Student interval."""
    found = statistics.estimate(values)
    return Point(x, found.mean, found.low, found.high, found.n)


def share(x: float | str, part: float, hits: float, n: int) -> Point:
    """A share of n with its Wilson interval."""
    return Point(x, part, *wilson(hits, n), n)


def wilson(hits: float, n: int) -> tuple[float, float]:
    """95% Wilson score interval of a share."""
    if n == 0:
        return 0.0, 1.0
    part, z2 = hits / n, Z * Z
    middle = (part + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * math.sqrt(part * (1 - part) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)
