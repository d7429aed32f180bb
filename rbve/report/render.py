"""HTML from templates: what is put into them is escaped, unless it says that it is HTML."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from rbve.report import figure, theme

STYLES = ("page.css", "figure.css", "table.css")
SCRIPTS = ("html.js", "figure.js", "table.js", "page.js")


def render(template: str, **values: Any) -> str:
    """A template of rbve/report/templates, filled in. `values` are escaped, unless Markup.

    Plain text, so that HTML on either side of it stays HTML.
    """
    return environment().get_template(template).render(**values)


def whole(template: str, figures: Iterable[figure.Figure] = (), **values: Any) -> str:
    """A whole page; Vega is in it if it has figures."""
    drawn = list(figures)
    return render(
        template,
        figures=drawn,
        styles=Markup("".join(web(name) for name in STYLES)),
        scripts=Markup("".join(web(name) for name in SCRIPTS)),
        themes=embedded(themes()),
        vega=Markup(vega()) if drawn else "",
        **values,
    )


def table(label: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], **options: Any) -> str:
    """A table that scrolls in itself; the first cell of a row names it.

    Args:
        label: for who cannot see it.
        columns: headings.
        rows: cells, escaped unless they are Markup.
        options: `classes`, one a row; `kind`, class of the table; `caption`.
    """
    parts: Any = environment().get_template("parts.jinja").module
    return str(parts.table(label, columns, list(rows), **options))


@cache
def environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("rbve.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    found.filters["packed"] = lambda each: embedded(figure.packed(each))
    found.filters["numbers"] = figure.numbers
    found.filters["embedded"] = embedded
    return found


def web(name: str) -> str:
    """A script or style of the page."""
    return resources.files("rbve.report").joinpath("web", name).read_text(encoding="utf-8")


@cache
def vega() -> str:
    """Vega and Vega-Lite for the browser, as one script."""
    import vl_convert

    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", figure.VERSION)
    return script.replace("</script", "<\\/script")


def themes() -> dict[str, Any]:
    """What figure.js draws with."""
    return {
        "light": {"config": theme.config(page=True), "card": theme.CARD},
        "dark": {"config": theme.config(dark=True, page=True), "card": theme.DARK[theme.CARD]},
        "swap": theme.DARK,
        "dashes": ["", *(" ".join(map(str, dashes)) for dashes in theme.DASHES[1:])],
    }


def embedded(content: Any) -> Markup:
    """JSON that may stand inside <script>: no end tag, no comment, no odd line end in it."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
