"""One self-contained HTML page of sections; pictures and numbers of its figures beside it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rbve.files import write_atomically
from rbve.report.chart import Chart, figure_of
from rbve.report.figure import Figure, as_csv, raster, svg
from rbve.report.render import whole

_PAGE, _FIGURES = "index.html", "figures"  # in a folder; beside that page


@dataclass(frozen=True)
class Section:
    """A heading, HTML, charts, HTML. Only `title` is escaped here.

    In the HTML: `scroll` makes wide things scroll in themselves (<div class="scroll" tabindex="0"
    role="region" aria-label="...">), `headline` is a larger first sentence, `muted` small print,
    <figure class="picture"> a white card for an image that has no files of its own, and
    <table class="filterable" data-filters="column, other"> gets search, filters and sorting.
    """

    id: str  # letters, digits, hyphens; unique within the page, its figures included
    title: str
    body: str  # before the charts
    charts: tuple[Chart | Figure, ...] = ()
    after: str = ""
    short: str = ""  # for the table of contents; default: the title
    files: Mapping[str, bytes] = field(default_factory=dict)  # to lie beside the figures
    first: bool = False  # before all other sections, whoever lists them
    linked: Mapping[str, str] = field(default_factory=dict)  # files beside the figures -> words

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(figure_of(c) if isinstance(c, Chart) else c for c in self.charts)


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
    page = out if out.suffix.lower() in (".html", ".htm") else out / _PAGE
    if page.is_dir():
        raise ValueError(f"{page}: is a folder; name a file that ends in .html or another folder")
    check_names(sections)
    sections = sorted(sections, key=lambda each: not each.first)
    folder = page.parent / (_FIGURES if page.name == _PAGE else f"{page.stem}-figures")
    for each in (figure for section in sections for figure in section.figures):
        drawing = svg(each)
        write_atomically(folder / f"{each.name}.png", raster(drawing))
        write_atomically(folder / f"{each.name}.svg", encode(drawing))
        write_atomically(folder / f"{each.name}.csv", encode(as_csv(each)))
    for held in (files or {}, *(section.files for section in sections)):
        for name, content in held.items():
            write_atomically(folder / name, content)
    write_atomically(page, encode(document(sections, title, about, folder.name)))
    return page


def document(sections: Sequence[Section], title: str, about: str, folder: str = _FIGURES) -> str:
    """`about` is HTML; `folder` holds the figures and lies beside the page."""
    figures = [each for section in sections for each in section.figures]
    values = {"title": title, "about": about, "folder": folder, "sections": sections}
    return whole("page.jinja", figures, **values)


def check_names(sections: Sequence[Section]) -> None:
    """Names become ids and file names: plain, and each once."""
    seen: set[str] = set()
    for each in sections:
        for name in (each.id, *(chart.name for chart in each.charts)):
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]*", name):
                raise ValueError(
                    f"name {name!r} of a section or figure: use letters, digits, hyphens"
                )
            if name in seen:
                raise ValueError(f"two sections or figures of one page are named {name!r}")
            seen.add(name)


def encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")
