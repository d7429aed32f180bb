"""How a text file separates its fields."""

from __future__ import annotations

import csv
import io
from itertools import islice

from rbve.data.logs.options import Options

SIGNS = (",", ";", "\t", "|")  # that are looked for
NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
ROWS = 50  # that have to agree with the header


def delimiter_of(start: str, options: Options) -> tuple[str, list[str]]:
    """(the sign between the fields of a file that starts like this, notes)."""
    if options.sign is not None:
        return options.sign, []
    found = max(SIGNS, key=lambda sign: evidence(start, sign, options))  # the first of equals
    if found == ",":
        return found, []
    return found, [f"fields are separated by {NAMES[found]}; pass --delimiter if that is wrong"]


def evidence(start: str, sign: str, options: Options) -> tuple[bool, bool, int]:
    """(the header names action and reward; rows are as long as it is; fields). More is better."""
    lines = start.splitlines()[:-1] or [start]  # the last one may be cut off
    try:
        records = csv.reader(io.StringIO("\n".join(lines), newline=""), delimiter=sign)
        header, *rows = islice(filter(None, records), ROWS + 1)
    except (csv.Error, ValueError):  # ValueError: not even a header
        return False, False, 0
    if len(header) == 1:
        return False, False, 1
    needed = {options.action or "action", options.reward or "reward"}
    agree = all(len(row) == len(header) for row in rows)
    return needed <= {name.strip() for name in header}, agree, len(header)
