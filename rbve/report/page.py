"""One self-contained HTML page of sections; pictures and numbers of its figures beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from rbve.files import write_atomically
from rbve.report import chart as charts
from rbve.report.chart import Chart

PAGE = "index.html"
FIGURES = "figures"
STYLES = ("chart.css", "table.css")
SCRIPTS = ("scale.js", "chart.js", "series.js", "explore.js", "table.js", "page.js")


def web(name: str) -> str:
    return resources.files("rbve.report").joinpath("web", name).read_text(encoding="utf-8")


STYLE = web("page.css")  # of all pages


@dataclass(frozen=True)
class Section:
    """A heading, HTML, charts below one another, HTML. Only `title` is escaped here.

    In the HTML: `scroll` makes wide things scroll in themselves (<div class="scroll" tabindex="0"
    role="region" aria-label="...">), `headline` is a larger first sentence, `muted` small print,
    <figure class="picture"> a white card for a picture drawn for white paper, and
    <table class="filterable" data-filters="column, other"> gets search, filters and sorting.
    """

    id: str  # letters, digits, hyphens; unique within the page, its charts included
    title: str
    body: str  # before the charts
    charts: tuple[Chart, ...] = ()
    after: str = ""
    short: str = ""  # for the table of contents; default: the title
    files: Mapping[str, bytes] = field(default_factory=dict)  # to lie beside the figures


def write(
    sections: Sequence[Section],
    out: Path,
    title: str,
    about: str,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Figures and `files` first, the page last: a page that exists is complete.

    `about` is HTML; `files` go into the folder of figures under their names.
    """
    page = out if out.suffix.lower() in (".html", ".htm") else out / PAGE
    if page.is_dir():
        raise ValueError(f"{page}: is a folder; name a file that ends in .html or another folder")
    check_names(sections)
    folder = page.parent / FIGURES
    for each in (chart for section in sections for chart in section.charts):
        write_figure(each, folder)
    for held in (files or {}, *(section.files for section in sections)):
        for name, content in held.items():
            write_atomically(folder / name, content)
    write_atomically(page, encode(document(sections, title, about)))
    return page


def write_figure(chart: Chart, folder: Path) -> None:
    from rbve.report.chart_image import draw  # needs matplotlib, which pages do not

    png, svg = draw(chart)
    write_atomically(folder / f"{chart.name}.png", png)
    write_atomically(folder / f"{chart.name}.svg", svg)
    write_atomically(folder / f"{chart.name}.csv", encode(charts.as_csv([chart])))


def check_names(sections: Sequence[Section]) -> None:
    """Names become ids and file names: plain, and each once."""
    seen: set[str] = set()
    for name in (n for s in sections for n in (s.id, *(chart.name for chart in s.charts))):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", name):
            raise ValueError(f"name {name!r} of a section or chart: use letters, digits, hyphens")
        if name in seen:
            raise ValueError(f"two sections or charts of one page are named {name!r}")
        seen.add(name)


def encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def embedded(content: Any) -> str:
    """JSON that may stand inside <script>: no end tag, no comment, no odd line end in it."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def document(sections: Sequence[Section], title: str, about: str) -> str:
    style = STYLE + "".join(web(name) for name in STYLES)
    script = "".join(web(name) for name in SCRIPTS)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p>{about}</p>
<noscript><p class="headline">Figures and long tables need JavaScript. Pictures and numbers of all
figures lie in the folder {FIGURES}/ beside this page.</p></noscript>
</header>
{contents(sections) if len(sections) > 1 else ""}
<main>
{"".join(section(each) for each in sections)}
</main>
<script>(() => {{
"use strict";
{script}
}})();</script>
</body>
</html>
"""


def contents(sections: Sequence[Section]) -> str:
    links = "".join(
        f'<li><a href="#{each.id}">{escape(each.short or each.title)}</a></li>' for each in sections
    )
    return f'<nav class="contents" aria-label="Contents"><ul>{links}</ul></nav>'


def section(each: Section) -> str:
    figures = "".join(figure(chart) for chart in each.charts)
    return f"""<section aria-labelledby="{each.id}">
<h2 id="{each.id}">{escape(each.title)}</h2>
{each.body}
{f'<div class="charts">{figures}</div>' if figures else ""}
{each.after}
</section>
"""


def figure(chart: Chart) -> str:
    """Words and data; the browser draws the rest."""
    kind = "chart wide" if len(chart.panels) > 1 else "chart"
    return f"""<figure class="{kind}" id="{chart.name}">
<figcaption><h3>{escape(chart.title)}</h3>
<p class="muted">{escape(charts.words(chart))}</p></figcaption>
<script type="application/json">{embedded(charts.as_json(chart))}</script>
<noscript><p>Picture: {FIGURES}/{chart.name}.png; numbers: {FIGURES}/{chart.name}.csv</p></noscript>
</figure>
"""
