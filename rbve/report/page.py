"""One self-contained HTML page of sections; pictures and numbers of its figures beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rbve.files import write_atomically
from rbve.report import chart as charts
from rbve.report.chart import Chart
from rbve.report.chart_spec import figure_of
from rbve.report.figure import raster, svg

PAGE, FIGURES = "index.html", "figures"  # in a folder; beside that page
ENDINGS = ("png", "svg", "csv")  # of a chart's files
STYLES = ("chart.css", "table.css")
SCRIPTS = ("scale.js", "chart.js", "series.js", "explore.js", "table.js", "page.js")


def web(name: str) -> str:
    return resources.files("rbve.report").joinpath("web", name).read_text(encoding="utf-8")


STYLE = web("page.css")  # of all pages


@dataclass(frozen=True)
class Picture:
    """A figure that is no chart: drawn once, for white paper. Its words stand beside it."""

    name: str  # as a chart's
    title: str
    note: str
    svg: str  # to stand inside the page: no prolog, ids of its own
    files: Mapping[str, bytes]  # to lie beside the page, by ending


@dataclass(frozen=True)
class Section:
    """A heading, HTML, pictures, charts, HTML. Only `title` is escaped here.

    In the HTML: `scroll` makes wide things scroll in themselves (<div class="scroll" tabindex="0"
    role="region" aria-label="...">), `headline` is a larger first sentence, `muted` small print,
    <figure class="picture"> a white card for an image that has no files of its own, and
    <table class="filterable" data-filters="column, other"> gets search, filters and sorting.
    """

    id: str  # letters, digits, hyphens; unique within the page, its figures included
    title: str
    body: str  # before the charts
    charts: tuple[Chart, ...] = ()
    after: str = ""
    short: str = ""  # for the table of contents; default: the title
    files: Mapping[str, bytes] = field(default_factory=dict)  # to lie beside the figures
    pictures: tuple[Picture, ...] = ()  # before the charts
    first: bool = False  # before all other sections, whoever lists them
    linked: Mapping[str, str] = field(default_factory=dict)  # files beside the figures -> words


def write(
    sections: Sequence[Section],
    out: Path,
    title: str,
    about: str,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Figures and `files` first, the page last: a page that exists is complete.

    `about` is HTML; `files` go into the folder of figures under their names. Every page has a
    folder of its own, so that pages side by side keep their figures.
    """
    page = out if out.suffix.lower() in (".html", ".htm") else out / PAGE
    if page.is_dir():
        raise ValueError(f"{page}: is a folder; name a file that ends in .html or another folder")
    check_names(sections)
    sections = sorted(sections, key=lambda each: not each.first)
    folder = page.parent / folder_of(page)
    for each in (chart for section in sections for chart in section.charts):
        write_figure(each, folder)
    drawn = (picture for section in sections for picture in section.pictures)
    beside = ({f"{each.name}.{end}": data for end, data in each.files.items()} for each in drawn)
    for held in (*beside, files or {}, *(section.files for section in sections)):
        for name, content in held.items():
            write_atomically(folder / name, content)
    write_atomically(page, encode(document(sections, title, about, folder.name)))
    return page


def folder_of(page: Path) -> str:
    """Name of the folder beside a page that holds its figures."""
    return FIGURES if page.name == PAGE else f"{page.stem}-figures"


def write_figure(chart: Chart, folder: Path) -> None:
    drawing = svg(figure_of(chart))
    write_atomically(folder / f"{chart.name}.png", raster(drawing))
    write_atomically(folder / f"{chart.name}.svg", encode(drawing))
    write_atomically(folder / f"{chart.name}.csv", encode(charts.as_csv([chart])))


def check_names(sections: Sequence[Section]) -> None:
    """Names become ids and file names: plain, and each once."""
    seen: set[str] = set()
    for each in sections:
        drawn = [picture.name for picture in each.pictures]
        for name in (each.id, *drawn, *(chart.name for chart in each.charts)):
            check_name(name, seen)
            seen.add(name)


def check_name(name: str, seen: set[str]) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", name):
        raise ValueError(f"name {name!r} of a section or figure: use letters, digits, hyphens")
    if name in seen:
        raise ValueError(f"two sections or figures of one page are named {name!r}")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def embedded(content: Any) -> str:
    """JSON that may stand inside <script>: no end tag, no comment, no odd line end in it."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def document(sections: Sequence[Section], title: str, about: str, folder: str = FIGURES) -> str:
    """`folder` holds the figures and lies beside the page."""
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
figures lie in the folder {escape(folder)}/ beside this page.</p></noscript>
</header>
{contents(sections) if len(sections) > 1 else ""}
<main>
{"".join(section(each, quote(folder)) for each in sections)}
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


def section(each: Section, folder: str) -> str:
    figures = "".join(figure(chart, folder) for chart in each.charts)
    return f"""<section aria-labelledby="{each.id}">
<h2 id="{each.id}">{escape(each.title)}</h2>
{each.body}
{linked(each.linked, folder)}
{"".join(picture(drawn, folder) for drawn in each.pictures)}
{f'<div class="charts">{figures}</div>' if figures else ""}
{each.after}
</section>
"""


def linked(files: Mapping[str, str], folder: str) -> str:
    found = ", ".join(
        f'<a href="{folder}/{name}">{name}</a> ({escape(words)})' for name, words in files.items()
    )
    return (
        f"<p>Files beside this page: {found}; those of a figure are linked below it, where "
        "“Numbers” shows what it draws.</p>"
        if files
        else ""
    )


def figure(chart: Chart, folder: str) -> str:
    """Words and data; the browser draws the rest."""
    kind = "chart wide" if len(chart.panels) > 1 else "chart"
    return f"""<figure class="{kind}" id="{chart.name}">
{caption(chart.title, charts.words(chart))}
<script type="application/json">{embedded(charts.as_json(chart))}</script>
{links(folder, chart.name, ENDINGS)}
</figure>
"""


def picture(drawn: Picture, folder: str) -> str:
    words = escape(f"{drawn.title}. {drawn.note}")
    svg = drawn.svg.replace("<svg", f'<svg role="img" aria-label="{words}"', 1)
    return f"""<figure class="picture" id="{drawn.name}">
{caption(drawn.title, drawn.note)}
<div class="scroll" role="region" tabindex="0" aria-label="Picture: {escape(drawn.title)}">
{svg}</div>
{links(folder, drawn.name, drawn.files)}
</figure>
"""


def caption(title: str, note: str) -> str:
    return f"""<figcaption><h3>{escape(title)}</h3>
<p class="muted">{escape(note)}</p></figcaption>"""


def links(folder: str, name: str, endings: Iterable[str]) -> str:
    """To the files beside the page."""
    found = (f'<a href="{folder}/{name}.{end}">{end.upper()}</a>' for end in endings)
    return f'<p class="files muted">{" · ".join(found)}</p>'
