"""A figure: a Vega-Lite specification over tidy rows, which are also told as a table and a CSV."""

import copy
import math
import operator
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rbve.report import sheet
from rbve.report.labels import mix

VERSION = "6.4"  # of Vega-Lite, in files and pages alike
_WIDTH = 820  # pixels of a picture's words
_PIXELS = 1.5  # of a PNG per pixel of the specification

# In order of preference. What draws pictures takes the first there is, and another for a whole
# line that holds a sign the font lacks (V̂, log₁₀), so the first has them all.
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_PICTURE_FONT = f"DejaVu Sans, {_FONT}"
_SIZE, _PICTURE_SIZE = 12, 11  # pixels, all labels
LETTER = 6.6  # mean width of one, in a picture
DASHES = ((1, 0), (6, 2.5), (2.5, 2.5), (7, 2.5, 2, 2.5))
INK, _MUTED, GRID, CARD = "#1d1d1f", "#5c5c61", "#ececef", "#ffffff"
_DARK = {INK: "#ececef", _MUTED: "#a8a8b0", GRID: "#303036", CARD: "#1f1f23"}

Row = Mapping[str, Any]
Spec = dict[str, Any]  # (part of) a Vega-Lite specification


class Entry(NamedTuple):
    """A series in the legend; rows of that `series` are switched by it."""

    name: str
    colour: str  # for white paper, "#rrggbb"
    line: bool = False
    dash: int = 0  # of DASHES
    ring: bool = False
    strong: bool = False


@dataclass(frozen=True)
class Figure:
    """Words, a drawing and the numbers it shows.

    Attributes:
        name: for ids and file names: letters, digits, hyphens; unique within a page.
        note: how to read it: what a dot and a bar are, n.
        spec: a Vega-Lite view, or {"concat": views}, which a page puts side by side where there is
            room. It draws `rows` unless a layer has data of its own, says colours for white paper
            as "#rrggbb" (a dark page lightens them) and may use the parameters `hidden`, names of
            series switched off in the legend, and `card`, the colour behind the drawing. The
            pointer and arrow keys find the items of layers whose name begins with "points".
        rows: tidy; fields that are not in `columns` are drawn, not told.
        columns: field -> heading, in the order of the table of numbers. On hover the fields
            `series`, `panel`, `low`, `high`, `n` and `note` are told without their headings.
        legend: series; a page shows them as buttons.
        alt: for who cannot see it; default: title and note.
        folded: the drawing itself names the series, so the legend need not be in sight.
    """

    name: str
    title: str
    note: str
    spec: Spec
    rows: Sequence[Row]
    columns: Mapping[str, str]
    legend: tuple[Entry, ...] = ()
    alt: str = ""
    folded: bool = False
    wide: bool = False  # as wide as the page even if it has one view

    @property
    def words(self) -> str:
        return self.alt or f"{self.title}. {self.note}"

    @property
    def views(self) -> list[Spec]:
        return self.spec.get("concat", [self.spec])


def svg(figure: Figure) -> str:
    """Picture with title and note in it; equal figures give equal text."""
    import vl_convert

    return vl_convert.vegalite_to_svg(whole(figure), vl_version=VERSION)


def png(figure: Figure) -> bytes:
    """As `svg`."""
    return raster(svg(figure))


def raster(drawing: str) -> bytes:
    import vl_convert

    return vl_convert.svg_to_png(drawing, scale=_PIXELS)


def whole(figure: Figure) -> Spec:
    """Specification that draws the picture on its own: words, data, legend, colours."""
    return {
        "$schema": f"https://vega.github.io/schema/vega-lite/v{VERSION[0]}.json",
        "description": figure.words,
        "title": {
            "text": _wrap(figure.title, int(0.78 * _WIDTH / LETTER)),
            "subtitle": _wrap(figure.note, int(_WIDTH / LETTER)),
            "fontSize": _PICTURE_SIZE + 3,
            "offset": 10,
        },
        "params": [{"name": "hidden", "value": []}, {"name": "card", "value": CARD}],
        "data": {"values": [{key: known(v) for key, v in row.items()} for row in figure.rows]},
        "config": config(),
        "concat": [copy.deepcopy(view) for view in figure.views],
        **{key: value for key, value in figure.spec.items() if key in ("columns", "resolve")},
    }


def config(page: bool = False) -> Spec:
    """Vega-Lite's `config`. On a page its card is the background and HTML the legend."""
    tones = (INK, _MUTED, GRID, CARD)
    ink, muted, grid, card = map(light_dark, tones) if page else tones
    size, font = (_SIZE, _FONT) if page else (_PICTURE_SIZE, _PICTURE_FONT)
    label: Spec = {"labelColor": muted, "titleColor": muted, "titleFontWeight": "normal"}
    label |= {"labelFontSize": size, "titleFontSize": size}
    lines = {"domainColor": muted, "domainOpacity": 0.6, "tickColor": muted, "tickOpacity": 0.6}
    below = {"subtitleColor": muted, "subtitleFontSize": size, "subtitlePadding": 5}
    return {
        "background": "transparent" if page else card,
        "font": font,
        "padding": 2 if page else 12,
        "aria": False,  # the figure is described as a whole, its numbers stand in a table
        "view": {"stroke": None},
        "axis": {**label, **lines, "gridColor": grid, "tickSize": 4, "labelOverlap": "greedy"},
        "axisY": {"titlePadding": 8},
        "title": {"anchor": "start", "frame": "group", "color": ink, "fontSize": size, **below},
        "legend": {**label, "labelColor": ink, "labelLimit": 400},
        "text": {"color": muted, "fontSize": size},
        "rule": {"color": muted},
    }


def _wrap(text: str, letters: int) -> list[str]:
    """Lines; n = 5 stays together."""
    lines = textwrap.wrap(text.replace("n = ", "n\u00a0=\u00a0"), letters)
    return [line.replace("\u00a0", " ") for line in lines] or [""]


def known(value: Any) -> Any:
    """As JSON knows it: null for what is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def light_dark(colour: str) -> str:
    """In CSS, a colour for white and for dark pages: there mixed with white until it stands out;
    black turns nearly white."""
    contrast = 12 if _luminance(colour) < 0.03 else 4.5
    enough = contrast * (_luminance(_DARK[CARD]) + 0.05) - 0.05
    lighter = (mix(colour, "#ffffff", k / 20) for k in range(21))
    dark = _DARK.get(colour) or next(each for each in lighter if _luminance(each) >= enough)
    return f"light-dark({colour}, {dark})"


def _luminance(colour: str) -> float:
    """From 0 to 1, as WCAG counts it."""
    parts = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(map(operator.mul, linear, (0.2126, 0.7152, 0.0722)))


def _for_page(part: Any, legend: bool) -> Any:
    """A specification in the colours of light and dark pages; `legend`: HTML has it."""
    if isinstance(part, list):
        return [_for_page(each, legend) for each in part]
    if isinstance(part, dict):
        own = {key: None if legend and key == "legend" else part[key] for key in part}
        return {k: v if k == "values" else _for_page(v, legend) for k, v in own.items()}
    colour = isinstance(part, str) and re.fullmatch("#[0-9a-fA-F]{6}", part)
    return light_dark(part) if colour else part


def packed(figure: Figure) -> dict[str, Any]:
    """For the page: spec, rows without their field names, headings and legend."""
    fields = list(dict.fromkeys(key for row in figure.rows for key in row))
    legend = [entry._asdict() for entry in figure.legend]
    return {
        "spec": _for_page(figure.spec, bool(legend)),
        "fields": fields,
        "rows": [[known(row.get(key)) for key in fields] for row in figure.rows],
        "columns": dict(figure.columns),
        "legend": _for_page(legend, legend=False),
    }


def numbers(figure: Figure) -> list[list[str]]:
    """Cells of the table under the figure."""
    return [[in_words(row.get(key)) for key in figure.columns] for row in figure.rows]


def as_csv(figure: Figure) -> str:
    """Numbers, unrounded; the first column names the figure."""
    lines = ([figure.name, *(row.get(key) for key in figure.columns)] for row in figure.rows)
    return sheet.as_csv(("chart", *figure.columns), lines)


def in_words(value: Any) -> str:
    """A measured number in few digits."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    size = abs(value)
    if size >= 1e7 or 0 < size < 1e-4:
        mantissa, exponent = f"{value:.2e}".split("e")
        return minus(f"{mantissa}e{int(exponent)}")
    if size >= 1000 or value == int(value):
        return minus(f"{value:,.0f}")
    places = min(8, 3 - math.floor(math.log10(size)))
    return minus(f"{value:,.{places}f}".rstrip("0").rstrip("."))


def minus(text: str) -> str:
    """A number with the sign that is as wide as a plus."""
    return text.replace("-", "−")
