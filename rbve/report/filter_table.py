"""A long table of which the browser shows 50 rows at a time, searched, filtered and sorted."""

from collections.abc import Sequence
from typing import Any

from rbve.report.figure import known
from rbve.report.render import render

Cell = str | int | float | None  # None, NaN and infinities show as a dash and sort last


def filter_table(
    name: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    filters: Sequence[str],
    caption: str,
    details: Sequence[Any] | None = None,
) -> str:
    """HTML. `filters`: columns that get a list to choose from; all columns can be sorted.

    `details`: a JSON value per row, shown when the row is opened. Of an object, each part stands
    under its key; texts are shown as they are (a command), other values as JSON (a spec). What
    all rows have in common is stored once.
    """
    for row, cells in enumerate(rows):
        if len(cells) != len(columns):
            raise ValueError(f"table {name}, row {row}: {len(cells)} cells, {len(columns)} columns")
    if strangers := [each for each in filters if each not in columns]:
        raise ValueError(f"table {name}: no column {strangers[0]!r} to filter by")
    if details is not None and len(details) != len(rows):
        raise ValueError(f"table {name}: {len(details)} details for {len(rows)} rows")
    content: dict[str, Any] = {
        "columns": [
            {"name": column, **_packed([known(row[k]) for row in rows])}
            for k, column in enumerate(columns)
        ],
        "filters": list(filters),
        "count": len(rows),
    }
    if details:
        plain = [_clean(each) for each in details]
        content["common"] = common = shared(plain)
        content["details"] = [without(each, common) for each in plain]
    return render("filter_table.jinja", name=name, caption=caption, content=content)


def _clean(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(key): _clean(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_clean(value) for value in content]
    return known(content)


def _packed(cells: Sequence[Cell]) -> dict[str, Any]:
    """Where cells repeat, each value once and places in that list."""
    values = list(dict.fromkeys(cells))
    if 2 * len(values) > len(cells) or any(isinstance(cell, float) for cell in values):
        return {"cells": list(cells)}
    place = {value: k for k, value in enumerate(values)}
    return {"values": values, "at": [place[cell] for cell in cells]}


def shared(details: Sequence[Any]) -> Any:
    """Object of what all of them have at equal places; None where they share nothing."""
    first = details[0]
    if not all(isinstance(each, dict) for each in details):
        return None
    common = {}
    for key in first:
        if all(key in each for each in details):
            values = [each[key] for each in details]
            if all(same(value, values[0]) for value in values):
                common[key] = values[0]
            elif (inner := shared(values)) is not None:
                common[key] = inner
    return common or None


def same(first: Any, second: Any) -> bool:
    """Equal, and of one type: 1, 1.0 and True are three values."""
    return type(first) is type(second) and repr(first) == repr(second)


def without(detail: Any, common: Any) -> Any:
    """What `common` lacks of it."""
    if not isinstance(common, dict):
        return detail
    own = {k: v for k, v in detail.items() if k not in common or not same(v, common[k])}
    return {k: without(v, common[k]) if k in common else v for k, v in own.items()}
