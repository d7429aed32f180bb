"""CSV files that a spreadsheet may open: no text in them is taken for a formula."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a formula may begin with


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([plain(name) for name in columns])
    writer.writerows([plain(cell) for cell in row] for row in rows)
    return stream.getvalue()


def plain(cell: Any) -> Any:
    """Text that would be taken for a formula gets an apostrophe; numbers stay as they are."""
    if not isinstance(cell, str) or not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
