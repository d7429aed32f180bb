"""Every run: what it did, what it measured, and the command that remakes it."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from rbve.paper.finals import SCORE, Final, final_of
from rbve.paper.pages._render import render
from rbve.paper.pages.command import command, settings
from rbve.paper.pages.gather import Study, grouped, problem_order, shown
from rbve.report.labels import describe
from rbve.report.page import Section
from rbve.report.render import Cell, filter_table
from rbve.rows import Run

COLUMNS = (
    "experiments", "problem", "method", "settings", "learning rate", "dataset", "return", "score",
    "over-estimation error", "diverged",
)  # fmt: skip
FILTERS = ("experiments", "problem", "method", "dataset", "diverged")


def section(study: Study) -> Section:
    ordered = sorted(
        ((study.finals.get(job) or final_of(run, {}), run) for job, run in study.runs.items()),
        key=lambda pair: _order(pair[0]),
    )
    experiments = grouped((job, name) for name in sorted(study.jobs) for job in study.jobs[name])
    lines = [_cells(study, final, run, experiments.get(run.job, [])) for final, run in ordered]
    details = [_detail(run) for _, run in ordered]
    table = filter_table("all-runs", COLUMNS, lines, FILTERS, "every run", details)
    body = render("runs.jinja", table=Markup(table))
    return Section("runs", f"Every run ({len(ordered):,})", body, short="Runs")


def _order(final: Final) -> tuple[Any, ...]:
    return problem_order(final.problem), shown(final).place, final.settings, final.seed


def _cells(study: Study, final: Final, run: Run, experiments: list[str]) -> tuple[Cell, ...]:
    return (
        ", ".join(experiments) or "–",
        final.problem.label,
        shown(final).name,
        describe(settings(run.spec)) or "default",
        run.field("learning_rate"),
        final.seed,
        *(_rounded(final.values.get(name)) for name in ("return", SCORE, "overestimation")),
        "yes" if study.diverged(run.job) else "no",
    )


def _rounded(value: float | None) -> float | None:
    """Digits that can be read; the rows keep all of them."""
    return None if value is None else float(f"{value:.4g}")


def _detail(run: Run) -> dict[str, Any]:
    try:
        how = command(run.spec)
    except ValueError as error:
        how = f"no command: {error}"
    return {"command": how, "job": run.job, "specification": run.spec}
