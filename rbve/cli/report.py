"""`rbve report`."""

import json
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
    from rich.table import Table
    from rich.text import Text

    from rbve.paper import report
    from rbve.paper._pages import claims_table

    need_one("RUNS", runs)
    with _console.bar("drawing", None, ""):
        study = report.read(runs)
        page = report.write_page(study, out)
    claims = [
        dict(zip(claims_table.COLUMNS, claims_table.cells(each), strict=True))
        for each in study.judged
    ]
    if not claims:
        _console.show_runs(study.runs, as_json)
    elif as_json:
        names = {name: name.lower().replace(" ", "_").replace("'", "") for name in claims[0]}
        lines = [{names[name]: cell for name, cell in claim.items()} for claim in claims]
        print(json.dumps({"claims": lines}))
    else:
        shown = ("verdict", "claim", "judged on", "judged again on", "verdict there")
        table = Table(*shown, title=Text("The paper's claims, measured here"))
        for claim in claims:
            table.add_row(*(Text(claim[name]) for name in shown))
        _console.output().print(table)
        _console.output().print(claims_table.tally(study.judged))
    _console.tell(f"report: {page}")
