"""An experiment's sections: what was asked, how much of it was run, its figures and tables."""

from __future__ import annotations

from rbve.experiments import Experiment
from rbve.report.page import Section
from rbve.report.study import against, aggregates, curves, scores
from rbve.report.study.gather import Study
from rbve.report.study.html import paragraph

SHORT = {
    "bsuite": "Scores",
    "fractions": "Share of data",
    "ranking_strength": "Strength λ",
    "reward_distribution": "Reward distribution",
    "filters": "Filters",
    "ranking_forms": "Ranking forms",
    "logged_action": "Logged action",
    "coverage": "Coverage",
}


def section(study: Study, name: str) -> list[Section]:
    experiment = study.experiments[name]
    if experiment.figure == "methods":
        return methods(study, name, experiment)
    charts = against.charts(name, experiment, study.of(name))
    return [
        Section(
            name.replace("_", "-"),
            title(name),
            words(study, name, experiment),
            charts,
            short=SHORT.get(name, ""),
        )
    ]


def title(name: str) -> str:
    return SHORT.get(name) or name.replace("_", " ")


def words(study: Study, name: str, experiment: Experiment) -> str:
    there, wanted = study.progress(name)
    count = f"{there:,} runs" if there == wanted else f"{there:,} of {wanted:,} runs so far"
    return paragraph(experiment.question, "headline") + paragraph(
        f"In the paper: {experiment.paper}. {count}."
        + (" Numbers will change as runs come in." if there < wanted else ""),
        "muted",
    )


def methods(study: Study, name: str, experiment: Experiment) -> list[Section]:
    found = study.of(name)
    known = scores.results(found)
    slug = name.replace("_", "-")
    if not known:
        return [Section(slug, title(name), words(study, name, experiment))]
    return [
        Section(
            slug,
            "Scores by method",
            words(study, name, experiment),
            (scores.chart(study, known),),
            scores.tables(study, known),
            title(name),
        ),
        Section(
            f"{slug}-over-problems",
            "Scores over all problems",
            paragraph(
                "Every problem counts alike. Intervals resample datasets within each problem, "
                "never problems."
            ),
            aggregates.charts(known),
            aggregates.tables(known),
            "Over problems",
        ),
        Section(
            f"{slug}-training",
            "Over training",
            paragraph("How return and the error of the values develop, problem by problem."),
            curves.charts(study, found),
            short="Training",
        ),
    ]
