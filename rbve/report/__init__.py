"""Reports: result rows in; a terminal table, JSON or one self-contained page out. Never trains."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def write_report(paths: Iterable[str | Path], out: str | Path) -> Path:
    """Page of all runs below `paths`. `out` is an .html file, or a folder that gets index.html.

    Of a study (`rbve reproduce`), the page opens with the paper's claims and what was measured.
    """
    from rbve import rows
    from rbve.report.claims_table import judge_all
    from rbve.report.page import write
    from rbve.report.summary import group

    given = [Path(path) for path in paths]
    runs = rows.find(given)
    return write(group(runs), Path(out), judge_all(given, runs))
