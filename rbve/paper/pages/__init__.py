"""The content of a study's page, from its result rows alone: `sections(paths, runs)`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rbve.report.page import Section
from rbve.rows import Run

__all__ = ["sections"]


def sections(paths: Sequence[Path], runs: Sequence[Run], judged: bool = True) -> list[Section]:
    """How to read it, experiments, theory, data, every run. Partial studies say what is missing."""
    from rbve.paper.pages import datasets, overview, theory
    from rbve.paper.pages import runs as every_run
    from rbve.paper.pages.experiments import in_order, section
    from rbve.paper.pages.gather import gather

    study = gather(paths, runs)
    return [
        overview.section(study, judged),
        *(found for name in in_order(study.experiments) for found in section(study, name)),
        *theory.sections(study.paths),
        datasets.section(study),
        every_run.section(study),
    ]
