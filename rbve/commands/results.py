"""Commands that show and keep results: report, pack."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rbve import console
from rbve.commands.arguments import Json, need_one


def report(
    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUNS")]],
    /,
    out: Path = Path("report.html"),
    as_json: Json = False,
) -> None:
    """Write a page of learning curves, final returns and over-estimation from result rows.

    Args:
        out: The page; figures and a CSV file go into a folder beside it.
    """
    from rbve import rows
    from rbve.report import write_report

    need_one("RUNS", runs)
    page = write_report(runs, out)
    console.show_runs(rows.find(runs), as_json)
    print(f"report: {page}", file=sys.stderr)


def pack(study: Positional[Annotated[Path, arg(metavar="STUDY")]], /, out: Path) -> None:
    """Keep of a study what reports read: rows, lists of runs, audits; no data, no checkpoints.

    `rbve report OUT` then gives the same page as `rbve report STUDY`.

    Args:
        out: Folder for a few small files.
    """
    from rbve.sweep import results

    packed = results.pack(study, out)
    left = f", {packed.left_out} not finished or of no experiment" if packed.left_out else ""
    print(f"{out}: {packed.runs} runs{left}; {packed.theory} of theory", file=sys.stderr)
