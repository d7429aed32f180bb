"""`rbve inspect`."""

import sys
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, Positional, arg

from rbve.cli import _console
from rbve.cli._arguments import Json
from rbve.cli._formats import FormatName, FormatOptions, chosen


def command(
    data: Positional[Annotated[Path, arg(metavar="DATA")]],
    /,
    formats: OmitArgPrefixes[FormatOptions] = FormatOptions(),  # noqa: B008
    columns: Path | None = None,
    format: FormatName = None,
    html: Path | None = None,
    gamma: float = 0.99,
    beta: float = 0.5,
    as_json: Json = False,
) -> None:
    """Audit a dataset of any format: what it holds, what is wrong with it, whether to train on it.

    Ends in a verdict, which is also the exit code: 0 fine, 3 look at this, 4 do not train.

    Args:
        data: A store, or a file or folder of any format that `rbve convert` reads.
        columns: TOML file that says which column of a CSV or Parquet log is what.
        html: Also write a page with figures.
        gamma: Discount of the values shown.
        beta: Temperature of the ranking weight.
    """
    from rbve.audit import audit_path
    from rbve.cli._audit import show

    audit = audit_path(data, format, chosen(data, format, formats, columns), gamma, beta)
    show(audit, str(data), as_json)
    if html is not None:
        from rbve.report.audit_page import write

        _console.tell(f"page: {write(audit, html, str(data))}")
    sys.exit(audit.exit_code)
