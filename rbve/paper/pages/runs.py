"""Every run: what it did, what it measured, and the command that remakes it."""

from __future__ import annotations

from typing import Any

from rbve.paper.finals import SCORE, Final, final_of
from rbve.paper.pages.command import command, settings
from rbve.paper.pages.gather import Study, problem_order, shown
from rbve.paper.pages.html import paragraph
from rbve.report.filter_table import Cell, filter_table
from rbve.report.labels import describe
from rbve.report.page import Section
from rbve.rows import Run

COLUMNS = (
    "experiments",
    "problem",
    "method",
    "settings",
    "learning rate",
    "dataset",
    "return",
    "score",
    "over-estimation error",
    "diverged",
)
FILTERS = ("experiments", "problem", "method", "dataset", "diverged")


def section(study: Study) -> Section:
    ordered = sorted(
        ((study.finals.get(job) or final_of(run, {}), run) for job, run in study.runs.items()),
        key=lambda pair: (problem_order(pair[0].problem), shown(pair[0]).place, place(pair[0])),
    )
    experiments = experiments_by_job(study)
    words = paragraph(
        "Settings are those that differ from the algorithm's defaults. Open a row for the run's "
        "specification and the command that remakes it; give that command where `rbve reproduce` "
        "was given, since the path of the data is relative to it. A run without a return has not "
        "been evaluated to its end."
    )
    table = filter_table(
        "all-runs",
        COLUMNS,
        [cells(study, final, run, experiments.get(run.job, "")) for final, run in ordered],
        FILTERS,
        "every run",
        [detail(run) for _, run in ordered],
    )
    return Section("runs", f"Every run ({len(ordered):,})", words + table, short="Runs")


def place(final: Final) -> tuple[str, int]:
    return final.settings, final.seed


def experiments_by_job(study: Study) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for name in sorted(study.jobs):
        for job in study.jobs[name]:
            found.setdefault(job, []).append(name)
    return {job: ", ".join(names) for job, names in found.items()}


def cells(study: Study, final: Final, run: Run, experiments: str) -> tuple[Cell, ...]:
    return (
        experiments or "–",
        final.problem.label,
        shown(final).name,
        describe(settings(run.spec)) or "default",
        run.field("learning_rate"),
        final.seed,
        rounded(final.values.get("return")),
        rounded(final.values.get(SCORE)),
        rounded(final.values.get("overestimation")),
        "yes" if study.diverged(run.job) else "no",
    )


def rounded(value: float | None) -> float | None:
    """Digits that can be read; the rows keep all of them."""
    return None if value is None else float(f"{value:.4g}")


def detail(run: Run) -> dict[str, Any]:
    try:
        how = command(run.spec)
    except ValueError as error:
        how = f"no command: {error}"
    return {"command": how, "job": run.job, "specification": run.spec}
