"""Reports: result rows in; a terminal table, JSON or one self-contained page out. Never trains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rbve.report.claims.judge import Judged
    from rbve.rows import Run

STUDY = "The paper's claims, measured"


class Findings(NamedTuple):
    """What reports show, read once."""

    paths: Sequence[Path]
    runs: Sequence[Run]
    judged: Sequence[Judged]  # the paper's claims; empty where no study was run


def read(paths: Iterable[str | Path]) -> Findings:
    """All runs below the paths, and what those of a study say about the paper's claims."""
    from rbve import rows
    from rbve.report.claims.judge import judge_all
    from rbve.sweep.results import EXPERIMENTS, THEORY

    given = [Path(path) for path in paths]
    # A study of theory alone has no trained runs, which is not worth a complaint.
    trained = [
        path for path in given if (path / EXPERIMENTS).is_dir() or not (path / THEORY).is_dir()
    ]
    runs = rows.find(trained)
    return Findings(given, runs, judge_all(given, runs))


def write_report(paths: Iterable[str | Path], out: str | Path) -> Path:
    """Page of all runs below `paths`. `out` is an .html file, or a folder that gets index.html.

    Of a study (`rbve reproduce`), the page opens with the paper's claims and what was measured.
    """
    return write_page(read(paths), out)


def write_page(found: Findings, out: str | Path) -> Path:
    from rbve.report import claims_table, problems, table
    from rbve.report.page import encode, write
    from rbve.report.summary import group

    groups = group(found.runs)
    files = {"summary.csv": encode(table.as_csv(groups))}
    if not found.judged:
        sections = problems.sections(groups)
        return write(sections, Path(out), problems.TITLE, problems.about(groups), files)
    from rbve.report import study

    files["claims.csv"] = encode(claims_table.as_csv(found.judged))
    sections = [claims_table.section(found.judged), *study.sections(found.paths, found.runs)]
    return write(sections, Path(out), STUDY, problems.about(groups), files)
