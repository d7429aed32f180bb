"""Reports: result rows in; a terminal table, JSON or one self-contained page out. Never trains."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

STUDY = "The paper's claims, measured"


def write_report(paths: Iterable[str | Path], out: str | Path) -> Path:
    """Page of all runs below `paths`. `out` is an .html file, or a folder that gets index.html.

    Of a study (`rbve reproduce`), the page opens with the paper's claims and what was measured.
    """
    from rbve import rows
    from rbve.report import claims_table, problems, table
    from rbve.report.claims.judge import judge_all
    from rbve.report.page import encode, write
    from rbve.report.summary import group

    given = [Path(path) for path in paths]
    runs = rows.find(given)
    groups = group(runs)
    files = {"summary.csv": encode(table.as_csv(groups))}
    judged = judge_all(given, runs)
    if not judged:
        sections = problems.sections(groups)
        return write(sections, Path(out), problems.TITLE, problems.about(groups), files)
    from rbve.report import study

    files["claims.csv"] = encode(claims_table.as_csv(judged))
    sections = [claims_table.section(judged), *study.sections(given, runs)]
    return write(sections, Path(out), STUDY, problems.about(groups), files)
