"""A chart as data, and drawn: series over x as lines, or a row per category with its value along.

Who makes a chart says what is in it; how it looks is decided here.
"""

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from rbve.report import marks
from rbve.report.figure import DASHES, LETTER, Entry, Figure, Spec, minus
from rbve.report.marks import Axis, Scale

_MANY = 12  # points of a line from which on dots are left out
_SIZES = {1: (620, marks.HEIGHT), 2: (330, marks.HEIGHT), 3: (225, 170)}  # pixels, by columns
_PHONE = 150  # pixels of a panel where it is narrow: names of marks stay apart even there
_LINE = 15  # pixels per line of labels
_OFFSET = {"field": "shift", "type": "quantitative", "scale": {"domain": [-0.5, 0.5]}}


class Point(NamedTuple):
    x: float | str  # text on a category axis
    y: float  # a point that is not finite is left out, and said so
    low: float | None = None  # 95% interval
    high: float | None = None
    n: int = 0  # runs behind it; 0 = not said
    note: str = ""  # more words, shown on hover


@dataclass(frozen=True)
class Series:
    """One entry of the legend. Series of one name in several panels are switched together."""

    name: str
    colour: str  # for white paper, "#rrggbb"
    points: tuple[Point, ...]
    members: tuple[tuple[float | str, float], ...] = ()  # single runs, drawn faintly
    dash: int = 0  # line style, tells series of one colour apart
    marker: Literal["dot", "ring"] = "dot"
    strong: bool = False  # the one to look at

    @property
    def pairs(self) -> list[tuple[float | str, float]]:
        """x and y of points and single runs."""
        return [*((point.x, point.y) for point in self.points), *self.members]


class Mark(NamedTuple):
    """A value to compare with: a thin line across the panel."""

    value: float
    name: str


@dataclass(frozen=True)
class Panel:
    title: str  # "" where the chart has one panel
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Chart:
    """lines: y over x. rows: a row per category x from the top, its value y along the width."""

    name: str  # for file names and ids: letters, digits, hyphens; unique within a page
    title: str
    note: str  # how to read it: what a dot and a bar are, n
    kind: Literal["lines", "rows"]
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    same_y: bool = False  # one range of values for all panels


def categories(panels: Sequence[Panel]) -> list[str]:
    """All x of a category axis, in order of appearance over the panels."""
    series = [each for panel in panels for each in panel.series]
    return list(dict.fromkeys(str(x) for each in series for x, _ in each.pairs))


def _series_of(chart: Chart) -> list[Series]:
    """Of all panels, each name once."""
    first: dict[str, Series] = {}
    for each in (series for panel in chart.panels for series in panel.series):
        first.setdefault(each.name, each)
    return list(first.values())


def note_of(chart: Chart) -> str:
    """The note, and what the drawing does not show."""
    hidden, far = Counter[str](), list[str]()
    for panel in chart.panels:
        for each in panel.series:
            hidden.update(each.name for x, y in each.pairs if not drawn(chart, x, y))
        place = f" ({panel.title})" if panel.title else ""
        away = [mark for mark in panel.marks if mark not in near_marks(chart, panel)]
        far += [f"{mark.name} {minus(f'{mark.value:.4g}')}{place}" for mark in away]
    parts = [chart.note]
    if lost := ", ".join(f"{name} {count}" for name, count in hidden.items()):
        scale = " or not positive" if "log" in (chart.x_scale, chart.y_scale) else ""
        parts.append(f"Left out, since not finite{scale}: {lost}.")
    if far:
        parts.append(f"Off the axis: {', '.join(far)}.")
    return " ".join(parts)


def shows(value: float | str, scale: Scale) -> bool:
    """Whether a value has a place on an axis."""
    if scale == "category" or isinstance(value, str):
        return True
    return math.isfinite(value) and (scale != "log" or value > 0)


def drawn(chart: Chart, x: float | str, y: float) -> bool:
    return shows(x, chart.x_scale) and shows(y, chart.y_scale)


def values(chart: Chart, panels: Iterable[Panel]) -> list[float]:
    """All y of panels that have a place on the axis: points, intervals, single runs."""
    series = [each for panel in panels for each in panel.series]
    every = [y for each in series for _, y in each.pairs]
    every += [end for each in series for p in each.points for end in p[2:4] if end is not None]
    return [value for value in every if shows(value, chart.y_scale)]


def near_marks(chart: Chart, panel: Panel) -> list[Mark]:
    """Without those so far off that they would squeeze the rest."""
    known = values(chart, chart.panels if chart.same_y else [panel])
    shown = [mark for mark in panel.marks if shows(mark.value, chart.y_scale)]
    if not known or chart.y_scale != "linear":
        return shown
    low, high = min(known), max(known)
    reach = 2 * max(high - low, 1e-9 + 0.05 * max(abs(low), abs(high)))
    return [mark for mark in shown if low - reach <= mark.value <= high + reach]


def figure_of(chart: Chart) -> Figure:
    """The chart drawn: its points are the rows."""
    count, line, series = len(chart.panels), chart.kind == "lines", _series_of(chart)
    columns = 2 if count == 4 else min(count, 3)
    panels = [_PanelView(chart, index, columns) for index in range(count)]
    headings = {"panel": "panel"} if any(panel.title for panel in chart.panels) else {}
    headings |= {name: name for name in ("series", *Point._fields)}
    headings |= {"x": chart.x_label or "row", "y": chart.y_label}
    entries = (Entry(s.name, s.colour, line, s.dash, s.marker == "ring", s.strong) for s in series)
    spec = marks.side_by_side([panel.view() for panel in panels], columns)
    rows = [row for panel in panels for row in panel.rows()]
    parts = (spec, rows, headings, tuple(entries) if len(series) > 1 else ())
    return Figure(chart.name, chart.title, note_of(chart), *parts, folded=_named_by_rows(chart))


def _named_by_rows(chart: Chart) -> bool:
    """Rows that carry the names of their series need no legend."""
    series = [each for panel in chart.panels for each in panel.series]
    return chart.kind == "rows" and all(p.x == each.name for each in series for p in each.points)


class _PanelView:
    """A panel: the rows of its points, and the view that draws them."""

    def __init__(self, chart: Chart, index: int, columns: int) -> None:
        self.chart, self.index, self.panel = chart, index, chart.panels[index]
        self.lines = chart.kind == "lines"
        self.width, self.height = _SIZES[columns]
        self.marks = sorted(near_marks(chart, self.panel))
        shared = chart.panels if chart.same_y else [self.panel]
        self.values = values(chart, shared)
        reach = [mark.value for panel in shared for mark in near_marks(chart, panel)]
        self.axis = Axis([*self.values, *reach], chart.y_scale)
        self.names = categories(chart.panels if self.lines else [self.panel])
        longest = max((len(each.points) for each in self.panel.series), default=0)
        self.banded = longest > (2 if chart.x_scale == "linear" else _MANY)
        held = {each.name: categories([Panel("", (each,))]) for each in self.panel.series}
        self.holders = {x: [name for name in held if x in held[name]] for x in self.names}

    def rows(self) -> Iterator[dict[str, Any]]:
        for each in self.panel.series:
            shown = [drawn(self.chart, point.x, point.y) for point in each.points]
            few = len(each.points) <= _MANY or not self.lines
            for k, point in enumerate(each.points):
                alone = not any(shown[max(0, k - 1) : k] + shown[k + 1 : k + 2])
                row = {"panel": self.panel.title, "series": each.name, **point._asdict()}
                row |= {} if shown[k] else {"low": None, "high": None}
                row |= {"strong": each.strong, "ring": each.marker == "ring", "k": self.index}
                row |= {"dot": bool(few or point.note or alone)}
                yield row | self.place(each, point.x)

    def place(self, each: Series, x: float | str) -> dict[str, Any]:
        """Where it stands, a little beside other series at the same x."""
        chart, step = self.chart, self.panel.series.index(each) - (len(self.panel.series) - 1) / 2
        if not self.lines:
            own = self.holders[str(x)]
            shift = (own.index(each.name) + 0.5) / len(own) - 0.5
            return {"place": self.names.index(str(x)), "shift": shift}
        if chart.x_scale == "category":
            most = max(len(panel.series) for panel in chart.panels)
            return {"place": self.names.index(str(x)), "shift": step * min(0.06, 0.7 / most)}
        if isinstance(x, str) or not shows(x, chart.x_scale):
            return {"at": None}
        move = 0.0 if self.banded else 0.006 * step
        if chart.x_scale == "log":
            return {"at": x * (self.x_axis.high / self.x_axis.low) ** move}
        return {"at": x + move * (self.x_axis.high - self.x_axis.low)}

    def members(self) -> Iterator[dict[str, Any]]:
        """Single runs; in a row a little above and below, so that equals stay apart."""
        for each in self.panel.series:
            seen, every = Counter[str](), Counter(str(x) for x, _ in each.members)
            for x, y in each.members:
                if drawn(self.chart, x, y):
                    row = {"series": each.name, "x": x, "y": y, **self.place(each, x)}
                    if not self.lines and (n := every[str(x)]) > 1:
                        row["shift"] += 0.2 * (seen[str(x)] / (n - 1) - 0.5)
                    seen[str(x)] += 1
                    yield row

    @cached_property
    def x_axis(self) -> Axis:
        """Of numbers; all panels have the same."""
        scale = self.chart.x_scale
        series = [each for panel in self.chart.panels for each in panel.series]
        known = sorted({float(x) for each in series for x, _ in each.pairs if shows(x, scale)})
        axis = Axis(known, scale, pad=0.02 if len(known) > _MANY else 0.07)
        if scale == "log" and len(known) <= 8:
            axis.label_each(known)
        return axis

    @cached_property
    def measure(self) -> Spec:
        """The channel of values; a linear one of its own fits what the legend leaves."""
        fixed = self.chart.y_scale != "linear" or self.chart.same_y
        flat = len(set(self.values) | {mark.value for mark in self.marks}) < 2
        big = any(abs(value) > 1e100 for value in self.values)
        axis = self.axis if fixed or flat or big else None
        channel = marks.measure("y", self.chart.y_label, axis=axis, grid=self.lines)
        if not self.lines:
            title = textwrap.wrap(self.chart.y_label, max(20, self.width // 7))
            channel["axis"]["title"] = title or None
        return channel

    def across(self) -> Spec:
        """The channel of x of lines."""
        chart = self.chart
        if chart.x_scale != "category":
            return marks.measure("at", chart.x_label, axis=self.x_axis, grid=False)
        each = self.width / max(1, len(self.names))
        turned = max((len(name) for name in self.names), default=0) * LETTER > each - 4
        style: Spec = {"labelLimit": 190, "labelAngle": -35 if turned else 0}
        return marks.category("place", self.names, chart.x_label, **style)

    def down(self) -> Spec:
        """The channel of rows."""
        strong = [each.name for each in self.panel.series if each.strong]
        bold = [k for k, name in enumerate(self.names) if name in strong]
        test: Spec = {"test": f"indexof({bold}, datum.value) >= 0", "value": "bold"}
        style: Spec = {"grid": True, "labelFontWeight": {"condition": test, "value": "normal"}}
        style |= {"labelLimit": 190, "domain": False, "ticks": False, "labelPadding": 8}
        return marks.category("place", self.names, **style)

    def colours(self) -> Spec:
        series = _series_of(self.chart)
        channel = marks.colours({each.name: each.colour for each in series})
        if len(series) > 1 and not _named_by_rows(self.chart):
            longest = max(len(each.name) for each in series)
            columns = max(1, int(800 / (LETTER * longest + 50)))
            symbol: Spec = {"symbolType": "stroke" if self.lines else "circle", "symbolOpacity": 1}
            symbol |= {"symbolStrokeWidth": 2.5, "symbolSize": 250 if self.lines else 70}
            channel["legend"] = {"orient": "top", "title": None, "columns": columns, **symbol}
        return channel

    def view(self) -> Spec:
        names, layers = list(self.mark_names()), self.layers()
        if not self.values:
            place = {"x": {"value": 40}, "y": {"value": 40}, "text": {"value": "no data"}}
            layers = [marks.text(place, [{}], fontStyle="italic"), *layers]
        most = max(map(len, self.holders.values()), default=1)
        step: Spec = {"step": max(marks.STEP, 13 * most + 4), "for": "position"}
        view = marks.view(
            [*layers, *(text for text, _ in names)],
            textwrap.wrap(self.panel.title, int(self.width / LETTER)),
            width=self.width,
            height=self.height if self.lines else step,
            where={"field": "k", "equal": self.index},
            above=8 + _LINE * max((lines for _, lines in names), default=0),
        )
        if self.chart.y_scale == "log":  # what has no place there is not drawn
            view["transform"] += [
                {"calculate": f"datum.{field} > 0 ? datum.{field} : {other}", "as": field}
                for field, other in (("y", "null"), ("low", "datum.y"), ("high", "datum.y"))
            ]
        return view

    def layers(self) -> list[Spec]:
        """Marks, single runs behind what is told of them, intervals, lines, dots."""
        colour, along = self.colours(), "y" if self.lines else "x"
        x, y = (self.across(), self.measure) if self.lines else (self.measure, self.down())
        place, layers = {"x": x, "y": y, "color": colour}, list[Spec]()
        if members := list(self.members()):
            faint = {"type": "circle", "size": 22, "opacity": 0.3}
            layers.append(marks.layer(faint, place, members))
        if self.lines and self.banded:
            span = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
            layers.append(marks.layer({"type": "area", "opacity": 0.14, "line": False}, span))
        else:
            layers.append(marks.interval(x, y, colour, along, where="isValid(datum.low)"))
        dots = {"fill": {**colour, "condition": {"test": "datum.ring", "value": {"expr": "card"}}}}
        if self.lines:
            dashes = {each.name: DASHES[each.dash % 4] for each in _series_of(self.chart)}
            path = {**place, "strokeDash": marks.colours(dashes, legend=colour["legend"])}
            for strong in sorted({each.strong for each in self.panel.series}):
                style = {"type": "line", "strokeWidth": 3 if strong else 1.8, "strokeJoin": "round"}
                where = "datum.strong" if strong else "!datum.strong"
                layers.append(marks.layer(style, path, where=where))
            dots["opacity"] = {"condition": {"test": "datum.dot", "value": 1}, "value": 0}
        else:
            thick = {"condition": {"test": "datum.strong", "value": 3}, "value": 2}
            layers[-1]["encoding"]["strokeWidth"] = thick
        size = 34 if self.lines else 60
        mark = {"type": "point", "size": size, "strokeWidth": 1.6, "opacity": 1}
        layers.append(marks.layer(mark, {**place, **dots}, name="points"))
        for each in layers if self.chart.x_scale == "category" or not self.lines else ():
            each["encoding"]["xOffset" if self.lines else "yOffset"] = _OFFSET
        return [*(marks.rule(mark.value, along, self.measure) for mark in self.marks), *layers]

    def mark_names(self) -> Iterator[tuple[Spec, int]]:
        """Names of marks where they stay apart, and the lines they take above the panel."""
        last, ends = math.inf, list[float]()
        for mark in self.marks:
            share, at = self.axis.share(mark.value), {**self.measure, "field": "value"}
            if self.lines:  # at the right above their lines, moved up where they would meet
                middle = (1 - share) * self.height
                last = min(middle - 4, last - 13)
                place, lines = {"y": at, "x": {"value": "width"}}, 0
                style: Spec = {"align": "right", "dx": -2, "dy": last - middle + 3}
            else:
                half = len(mark.name) * LETTER / 2 + 4
                middle = min(max(share * _PHONE, half), max(_PHONE - half, half))
                level = next((k for k, end in enumerate(ends) if end <= middle - half), len(ends))
                ends[level : level + 1] = [middle + half]
                place, lines = {"x": at, "y": {"value": -4 - level * _LINE}}, level + 1
                style = {"align": "left" if share < 0.2 else "right" if share > 0.8 else "center"}
            style |= {"baseline": "bottom", "fontStyle": "italic"}
            yield marks.text({**place, "text": {"field": "name"}}, [mark._asdict()], **style), lines
