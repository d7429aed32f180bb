"""HTML from templates: what is put into them is escaped, unless it says that it is HTML."""

import base64
import gzip
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
    theme = {
        "config": figure.config(page=True),
        "card": figure.light_dark(figure.CARD),
        "dashes": ["", *(" ".join(map(str, dashes)) for dashes in figure.DASHES[1:])],
    }
    return (
        environment()
        .get_template(template)
        .render(
            figures=drawn,
            styles=Markup("".join(map(web, STYLES))),
            scripts=Markup("".join(map(web, SCRIPTS))),
            theme=embedded(theme),
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
    under its key; texts are shown as they are (a command), other values as JSON (a spec).
    """
    for row, cells in enumerate(rows):
        if len(cells) != len(columns):
            raise ValueError(f"table {name}, row {row}: {len(cells)} cells, {len(columns)} columns")
    if strangers := [each for each in filters if each not in columns]:
        raise ValueError(f"table {name}: no column {strangers[0]!r} to filter by")
    if details is not None and len(details) != len(rows):
        raise ValueError(f"table {name}: {len(details)} details for {len(rows)} rows")
    content = {"columns": columns, "filters": filters, "rows": rows, "details": details}
    return part("filter_table", name, caption, len(rows), _compressed(content))


def _compressed(content: Any) -> str:
    """JSON as gzip in base64: rows of a study repeat each other. What is not finite is null."""
    finite = json.loads(json.dumps(content), parse_constant=lambda _: None)
    text = json.dumps(finite, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
