"""HTML from templates: what is put into them is escaped, unless it says that it is HTML."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from rbve.report import figure

STYLES = ("page.css", "figure.css", "table.css")
SCRIPTS = ("html.js", "figure.js", "table.js", "page.js")
Cell = str | int | float | None  # None, NaN and infinities show as a dash and sort last


def part(macro: str, *values: Any, **options: Any) -> str:
    """HTML of a macro of templates/parts.jinja; `values` are escaped, unless Markup.

    Plain text, so that HTML on either side of it stays HTML.
    """
    parts = environment().get_template("parts.jinja").module
    return str(getattr(parts, macro)(*values, **options))


def whole(template: str, figures: Iterable[figure.Figure] = (), **values: Any) -> str:
    """A whole page; Vega is in it if it has figures."""
    drawn = list(figures)
    themes = {
        "light": {"config": figure.config(page=True), "card": figure.CARD},
        "dark": {"config": figure.config(dark=True, page=True), "card": figure.DARK[figure.CARD]},
        "swap": figure.DARK,
        "dashes": ["", *(" ".join(map(str, dashes)) for dashes in figure.DASHES[1:])],
    }
    return (
        environment()
        .get_template(template)
        .render(
            figures=drawn,
            styles=Markup("".join(map(web, STYLES))),
            scripts=Markup("".join(map(web, SCRIPTS))),
            themes=embedded(themes),
            vega=Markup(vega()) if drawn else "",
            **values,
        )
    )


@cache
def environment() -> jinja2.Environment:
    loader, strict = jinja2.PackageLoader("rbve.report"), jinja2.StrictUndefined
    blocks: Any = {"trim_blocks": True, "lstrip_blocks": True}
    made = jinja2.Environment(loader=loader, autoescape=True, undefined=strict, **blocks)
    made.filters["packed"] = lambda each: embedded(figure.packed(each))
    made.filters["numbers"] = figure.numbers
    made.filters["embedded"] = embedded
    return made


def web(name: str) -> str:
    """A script or style of the page."""
    return resources.files("rbve.report").joinpath("web", name).read_text(encoding="utf-8")


@cache
def vega() -> str:
    """Vega and Vega-Lite for the browser, as one script."""
    import vl_convert

    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", figure.VERSION)
    return script.replace("</script", "<\\/script")


def embedded(content: Any) -> Markup:
    """JSON that may stand inside <script>: no end tag, no comment, no odd line end in it."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def filter_table(
    name: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    filters: Sequence[str],
    caption: str,
    details: Sequence[Any] | None = None,
) -> str:
    """A long table, searched, filtered and sorted in the browser, which shows 50 rows at a time.

    `filters`: columns that get a list to choose from; all columns can be sorted.
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
            {"name": column, **_packed([figure.known(row[k]) for row in rows])}
            for k, column in enumerate(columns)
        ],
        "filters": list(filters),
        "count": len(rows),
    }
    if details:
        plain = [_clean(each) for each in details]
        content["common"] = common = shared(plain)
        content["details"] = [without(each, common) for each in plain]
    return part("filter_table", name, caption, content)


def _clean(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(key): _clean(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_clean(value) for value in content]
    return figure.known(content)


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
