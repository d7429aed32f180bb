"""The content of a study's page, from its result rows alone: `sections(study)`."""

from __future__ import annotations

from rbve.paper.pages.gather import Study
from rbve.report.page import Section

__all__ = ["sections"]


def sections(study: Study, judged: bool = True) -> list[Section]:
    """How to read it, experiments, theory, data, every run. Partial studies say what is missing."""
    from rbve.paper.pages import datasets, experiments, overview, runs, theory

    return [
        overview.section(study, judged),
        *experiments.sections(study),
        *theory.sections(study),
        datasets.section(study),
        runs.section(study),
    ]
