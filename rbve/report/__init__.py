"""Reports: result rows in; a terminal table, JSON or one self-contained page out. Never trains."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def write_report(paths: Iterable[str | Path], out: str | Path) -> Path:
    """Page of all runs below `paths`. `out` is an .html file, or a folder that gets index.html."""
    from rbve import rows
    from rbve.report.page import write
    from rbve.report.summary import group

    return write(group(rows.find(map(Path, paths))), Path(out))
