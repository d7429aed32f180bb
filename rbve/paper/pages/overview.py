"""How to read the page: what was run at which scale, and how much of it is there."""

from __future__ import annotations

from collections.abc import Sequence

from rbve.paper import experiments
from rbve.paper.experiments import Outline, Theory
from rbve.paper.finals import final_of
from rbve.paper.pages._render import render
from rbve.paper.pages.gather import Study, grouped, shown
from rbve.paper.pages.measures import span
from rbve.policy.trained import averaged
from rbve.report.page import Section
from rbve.report.table import ABSENT
from rbve.rows import Run

COLUMNS = (
    "experiment", "question", "in the paper", "runs", "datasets per problem", "updates",
    "target copied every", "batch", "settings per method", "evaluation",
)  # fmt: skip
FILES = {"claims.csv": "the claims", "summary.csv": "every method on every problem"}


def section(study: Study, judged: bool = True) -> Section:
    jobs = set().union(*study.jobs.values())
    body = render(
        "overview.jinja",
        runs=study.runs,
        there=sum(job in study for job in jobs),
        count=len(jobs),
        other=len(set(study.runs) - jobs),
    )
    sizes = render("experiments.jinja", columns=COLUMNS, rows=_lines(study))
    linked = FILES if judged else {"summary.csv": FILES["summary.csv"]}
    title, short = "How to read this page", "How to read"
    return Section("reading", title, body, after=sizes, short=short, first=True, linked=linked)


def _lines(study: Study) -> list[tuple[str, ...]]:
    """Every experiment of the package, run or not, where any was; then those of users' files."""
    lines: list[tuple[str, ...]] = []
    listed: dict[str, Outline | Theory] = {}
    if study.theory or not set(study.experiments) <= set(study.outlines):
        listed.update((name, experiments.load(name)) for name in experiments.names())
    for name, each in {**listed, **study.experiments}.items():
        if isinstance(each, Outline):
            there, count = study.progress(name)
            words = f"{there:,} of {count:,}" if count else "not run"
            own = [study.runs[job] for job in study.jobs.get(name, ()) if job in study.runs]
            lines.append((name, each.question, each.paper or ABSENT, words, *_sizes(own)))
        else:
            known = len(study.theory.get(name, ()))
            words = f"{known:,}" if known else "not run"
            lines.append((name, experiments.summary(name), each.paper, words, *_sizes([])))
    return lines


def _sizes(runs: Sequence[Run]) -> tuple[str, ...]:
    """The last COLUMNS, as the runs' own specifications have them."""
    if not runs:
        return (ABSENT,) * 6
    finals = [final_of(run, {}) for run in runs]
    datasets = grouped((each.problem, each.seed) for each in finals)
    settings = grouped(((each.problem, shown(each)), each.settings) for each in finals)

    def field(name: str) -> str:
        return span(run.field(name) for run in runs)

    lengths = ("steps", "every", "final_evaluations")
    last = [averaged(*(run.field(name) for name in lengths)) for run in runs]
    return (
        span(len(set(seeds)) for seeds in datasets.values()),
        field("steps"),
        f"{field('target_period')} updates",
        field("batch_size"),
        span(len(set(each)) for each in settings.values()),
        f"{field('eval_episodes')} episodes every {field('every')} updates, the last "
        f"{span(last)} averaged",
    )
