"""Reports: result rows in; a terminal table, JSON or one self-contained page out. Never trains."""

from collections.abc import Iterable
from pathlib import Path

__all__ = ["write_report"]


def write_report(paths: Iterable[str | Path], out: str | Path) -> Path:
    """Page of all runs below `paths`. `out` is an .html file, or a folder that gets index.html.

    The page of a study of the paper, which opens with its claims, is rbve.paper.report's.

    Args:
        paths: Folders that hold runs, at any depth.
        out: What to write.

    Returns:
        The page's path. Its figures lie beside it as PNG, SVG and CSV.

    Example:
        >>> rbve.write_report(["runs"], "report.html").name
        'report.html'
    """
    from rbve import rows
    from rbve.report import problems, table
    from rbve.report.page import encode, write
    from rbve.report.summary import group

    groups = group(rows.find([Path(path) for path in paths]))
    files = {"summary.csv": encode(table.as_csv(groups))}
    return write(
        problems.sections(groups), Path(out), problems.TITLE, problems.about(groups), files
    )
