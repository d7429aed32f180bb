"""A study's page: how to read it and what was run, the sections of others, every run."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from rbve.paper import experiments
from rbve.paper._pages import datasets, render, theory
from rbve.paper._pages import experiments as of_experiments
from rbve.paper._pages.command import command, settings
from rbve.paper._pages.gather import Study, grouped, problem_order, shown
from rbve.paper._pages.measures import span
from rbve.paper.experiments import Outline, Theory
from rbve.paper.finals import SCORE, Final, final_of
from rbve.paper.results import Listed
from rbve.policy.trained import averaged
from rbve.report.labels import describe
from rbve.report.page import Section
from rbve.report.render import Cell, filter_table
from rbve.report.table import ABSENT
from rbve.rows import Run

COLUMNS = (
    "experiment", "question", "in the paper", "runs", "datasets per problem", "updates",
    "target copied every", "batch", "settings per method", "evaluation",
)  # fmt: skip
_FILES = {
    "claims.csv": "the claims",
    "sizes.csv": "the runs behind each verdict",
    "summary.csv": "every method on every problem",
}
_RUN_COLUMNS = (
    "experiments", "problem", "method", "settings", "learning rate", "dataset", "return", "score",
    "over-estimation error", "diverged",
)  # fmt: skip
_RUN_FILTERS = ("experiments", "problem", "method", "dataset", "diverged")


def sections(study: Study, judged: bool = True) -> list[Section]:
    """How to read it, experiments, theory, data, every run. Partial studies say what is missing."""
    questions = (*of_experiments.sections(study), *theory.sections(study))
    return [section(study, judged), *questions, datasets.section(study), runs(study)]


def section(study: Study, judged: bool = True) -> Section:
    there, count = study.progress(study.jobs)
    body = render(
        "overview.jinja",
        runs=study.runs,
        there=there,
        count=count,
        longer=study.progress(study.longer)[0],
        other=len(set(study.runs) - study.jobs - study.longer),
    )
    sizes = render("experiments.jinja", columns=COLUMNS, rows=_lines(study))
    linked = _FILES if judged else {"summary.csv": _FILES["summary.csv"]}
    title, short = "How to read this page", "How to read"
    return Section("reading", title, body, after=sizes, short=short, first=True, linked=linked)


def _lines(study: Study) -> list[tuple[str, ...]]:
    """Every experiment of the package, run or not, where any was; then those of users' files."""
    lines: list[tuple[str, ...]] = []
    listed: dict[str, Outline | Theory] = {}
    if study.theory or any(not each.file for each in study.experiments.values()):
        listed.update((name, experiments.load(name)) for name in experiments.names())
    for name, each in {**listed, **study.experiments}.items():
        if isinstance(each, Outline):
            known = study.listed.get(name, Listed())
            words = "{:,} of {:,}".format(*study.progress(known.jobs)) if known.jobs else "not run"
            if known.longer:
                words += ", longer {:,} of {:,}".format(*study.progress(known.longer))
            own = [study.runs[job] for job in known.jobs if job in study.runs]
            lines.append((name, each.question, each.paper or ABSENT, words, *_sizes(own)))
        else:
            count = len(study.theory.get(name, ()))
            words = f"{count:,}" if count else "not run"
            lines.append((name, experiments.summary(name), each.paper, words, *_sizes([])))
    return lines


def _sizes(runs: Sequence[Run]) -> tuple[str, ...]:
    """The last COLUMNS, as the runs' own specifications have them."""
    if not runs:
        return (ABSENT,) * 6
    finals = [final_of(run, {}) for run in runs]
    datasets = grouped((each.problem, each.seed) for each in finals)
    tried = grouped(((each.problem, shown(each)), each.settings) for each in finals)
    lengths = ("steps", "every", "final_evaluations")
    last = [averaged(*(run.field(name) for name in lengths)) for run in runs]
    names = ("steps", "target_period", "batch_size", "eval_episodes", "every")
    steps, period, batch, episodes, every = (span(run.field(n) for run in runs) for n in names)
    return (
        span(len(set(seeds)) for seeds in datasets.values()),
        steps,
        f"{period} updates",
        batch,
        span(len(set(each)) for each in tried.values()),
        f"{episodes} episodes every {every} updates, the last {span(last)} averaged",
    )


def runs(study: Study) -> Section:
    """Every run: what it did, what it measured, and the command that remakes it."""

    def order(pair: tuple[Final, Run]) -> tuple[Any, ...]:
        final = pair[0]
        return problem_order(final.problem), shown(final).place, final.settings, final.seed

    known = ((study.finals.get(job) or final_of(run, {}), run) for job, run in study.runs.items())
    ordered = sorted(known, key=order)
    of = grouped(
        (job, f"{name}{words}")
        for name, known in sorted(study.listed.items())
        for jobs, words in ((known.jobs, ""), (known.longer, " (longer)"))
        for job in jobs
    )
    lines = [_cells(study, final, run, of.get(run.job, [])) for final, run in ordered]
    details = [_detail(run) for _, run in ordered]
    table = filter_table("all-runs", _RUN_COLUMNS, lines, _RUN_FILTERS, "every run", details)
    body = render("runs.jinja", table=Markup(table))
    return Section("runs", f"Every run ({len(ordered):,})", body, short="Runs")


def _cells(study: Study, final: Final, run: Run, experiments: list[str]) -> tuple[Cell, ...]:
    measured = (final.values.get(name) for name in ("return", SCORE, "overestimation"))
    return (
        ", ".join(experiments) or "–",
        final.problem.label,
        shown(final).name,
        describe(settings(run.spec)) or "default",
        run.field("learning_rate"),
        final.seed,
        # Digits that can be read; the rows keep all of them.
        *(None if value is None else float(f"{value:.4g}") for value in measured),
        "yes" if study.diverged(run.job) else "no",
    )


def _detail(run: Run) -> dict[str, Any]:
    try:
        how = command(run.spec)
    except ValueError as error:
        how = f"no command: {error}"
    return {"command": how, "job": run.job, "specification": run.spec}
