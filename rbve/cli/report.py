"""`rbve report`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rbve.cli import _console
from rbve.cli._arguments import Json, need_one


def command(
    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUNS")]],
    /,
    out: Path = Path("report.html"),
    as_json: Json = False,
) -> None:
    """Write a page of learning curves, final returns and over-estimation from result rows.

    Of a study (`rbve reproduce`), the page opens with the paper's claims and what was measured.

    Args:
        runs: One or more folders of runs, or of a study.
        out: The page. Its figures and CSV files go into a folder beside it: NAME-figures of
            NAME.html, figures of index.html.
    """
    from rbve.paper import report

    need_one("RUNS", runs)
    with _console.bar("drawing", None, ""):
        found = report.read(runs)
        page = report.write_page(found, out)
    if found.judged:
        _console.show_claims(found.judged, as_json)
    else:
        _console.show_runs(found.runs, as_json)
    _console.tell(f"report: {page}")
