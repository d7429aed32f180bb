"""A chart as a figure: series over x as lines, or a row per category with its value along."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from rbve.report import marks, theme
from rbve.report.axis import FEW, Axis
from rbve.report.chart import (
    COLUMNS,
    Chart,
    Mark,
    Series,
    categories,
    named_by_rows,
    near_marks,
    places,
    series_of,
    shows,
    values,
    words,
)
from rbve.report.figure import Entry, Figure, Spec

_MANY = 12  # points of a line from which on dots are left out
_WIDTHS = {1: 620, 2: 330, 3: 225}  # pixels of a picture's panel by columns
_PHONE = 150  # pixels of a panel where it is narrow: names of marks stay apart even there
_LINE = 15  # pixels per line of labels


def figure_of(chart: Chart) -> Figure:
    """The chart drawn: its points are the rows."""
    count = len(chart.panels)
    columns = count if count <= 3 else 2 if count == 4 else 3
    panels = [_Drawn(chart, index, columns) for index in range(count)]
    titled = any(panel.title for panel in chart.panels)
    heads = {"panel": "panel", "x": chart.x_label or "row", "y": chart.y_label}
    return Figure(
        name=chart.name,
        title=chart.title,
        note=words(chart),
        spec=marks.side_by_side([panel.view() for panel in panels], columns),
        rows=[row for panel in panels for row in panel.rows],
        columns={name: heads.get(name, name) for name in COLUMNS if titled or name != "panel"},
        legend=_entries(chart),
        folded=named_by_rows(chart),
    )


def _entries(chart: Chart) -> tuple[Entry, ...]:
    """Of the legend, which a lone series needs not."""
    found = series_of(chart)
    line = chart.kind == "lines"
    return tuple(
        Entry(each.name, each.colour, line, each.dash, each.marker == "ring", each.strong)
        for each in found
        if len(found) > 1
    )


class _Drawn:
    """A panel: the rows of its points, and the view that draws them."""

    def __init__(self, chart: Chart, index: int, columns: int) -> None:
        self.chart, self.index = chart, index
        self.panel = chart.panels[index]
        self.width = _WIDTHS[columns]
        self.marks = sorted(near_marks(chart, self.panel))
        shared = chart.panels if chart.same_y else [self.panel]
        self.found = values(chart, shared)
        reach = [m.value for p in shared for m in near_marks(chart, p)]
        self.axis = Axis([*self.found, *reach], chart.y_scale)
        self.names = categories([self.panel] if chart.kind == "rows" else chart.panels)
        longest = max((len(each.points) for each in self.panel.series), default=0)
        self.banded = longest > (2 if chart.x_scale == "linear" else _MANY)
        self.holders = {
            name: [each.name for each in self.panel.series if name in places(each)]
            for name in self.names
        }
        self.rows = [row for each in self.panel.series for row in self.rows_of(each)]

    # Rows

    def rows_of(self, each: Series) -> Iterator[dict[str, Any]]:
        chart = self.chart
        told = [shows(p.x, chart.x_scale) and shows(p.y, chart.y_scale) for p in each.points]
        few = len(each.points) <= _MANY or chart.kind == "rows"
        for k, point in enumerate(each.points):
            alone = not any(told[max(0, k - 1) : k] + told[k + 1 : k + 2])
            row = {"panel": self.panel.title, "series": each.name, **point._asdict()}
            row |= {} if told[k] else {"low": None, "high": None}
            row |= {"strong": each.strong, "ring": each.marker == "ring", "k": self.index}
            row |= {"dot": bool(few or point.note or alone)}
            yield row | self.place(each, point.x)

    def place(self, each: Series, x: float | str) -> dict[str, Any]:
        """Where it stands, a little beside other series at the same x."""
        chart, step = self.chart, self.panel.series.index(each) - (len(self.panel.series) - 1) / 2
        if chart.kind == "rows":
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

    def members(self) -> list[dict[str, Any]]:
        """Single runs; in a row a little above and below, so that equals stay apart."""
        found = []
        for each in self.panel.series:
            by_x: dict[str, int] = {}
            counts = [str(x) for x, _ in each.members]
            for x, y in each.members:
                if not (shows(x, self.chart.x_scale) and shows(y, self.chart.y_scale)):
                    continue
                row = {"series": each.name, "x": x, "y": y, **self.place(each, x)}
                if self.chart.kind == "rows":
                    k, n = by_x.setdefault(str(x), 0), counts.count(str(x))
                    by_x[str(x)] += 1
                    row["shift"] += 0.2 * (k / (n - 1) - 0.5) if n > 1 else 0.0
                found.append(row)
        return found

    # Axes

    @cached_property
    def x_axis(self) -> Axis:
        """Of numbers; all panels have the same."""
        chart = self.chart
        every = (x for p in chart.panels for each in p.series for x in places(each).values())
        found = sorted({float(x) for x in every if shows(x, chart.x_scale)})
        axis = Axis(found, chart.x_scale, pad=0.02 if len(found) > _MANY else 0.07)
        if chart.x_scale == "log" and len(found) <= FEW:
            axis.one_by_one(found)
        return axis

    def measure(self, title: str, **options: Any) -> Spec:
        """The channel of values; a linear one of its own fits what the legend leaves."""
        fixed = self.chart.y_scale != "linear" or self.chart.same_y
        flat = len(set(self.found) | {mark.value for mark in self.marks}) < 2
        big = any(abs(value) > 1e100 for value in self.found)
        ticks = self.axis.ticks if fixed or flat or big else None
        return marks.measure("y", title, ticks=ticks, **options)

    def across(self) -> Spec:
        """The channel of x of lines."""
        chart = self.chart
        if chart.x_scale != "category":
            return marks.measure("at", chart.x_label, ticks=self.x_axis.ticks, grid=False)
        each = self.width / max(1, len(self.names))
        turned = max((len(name) for name in self.names), default=0) * theme.LETTER > each - 4
        look = {"labelAngle": -35} if turned else {"labelAngle": 0}
        return marks.category("place", self.names, chart.x_label, labelLimit=190, **look)

    def view(self) -> Spec:
        rows = self.chart.kind == "rows"
        levels = list(self.mark_levels()) if rows else []
        layers = [] if self.found else [marks.nothing()]
        layers += self.row_layers(levels) if rows else self.line_layers()
        above = 8 + _LINE * max((level + 1 for _, level in levels), default=0)
        found = marks.view(
            layers,
            textwrap.wrap(self.panel.title, int(self.width / theme.LETTER)),
            width=self.width,
            height=self.row_height() if rows else marks.HEIGHT if self.width > 300 else 170,
            where={"field": "k", "equal": self.index},
            above=above,
        )
        found["transform"] += self.placed()
        return found

    def placed(self) -> list[Spec]:
        """What has no place on a log axis is not drawn."""
        found = [("y", "null"), ("low", "datum.y"), ("high", "datum.y")]
        return [
            {"calculate": f"datum.{field} > 0 ? datum.{field} : {other}", "as": field}
            for field, other in found
            if self.chart.y_scale == "log"
        ]

    def row_height(self) -> Spec | int:
        most = max(map(len, self.holders.values()), default=1)
        return {"step": max(marks.STEP, 13 * most + 4), "for": "position"}

    def colours(self) -> Spec:
        found = series_of(self.chart)
        line = self.chart.kind == "lines"
        legend = None
        if len(found) > 1 and not named_by_rows(self.chart):
            longest = max(len(each.name) for each in found)
            legend = {
                "orient": "top",
                "title": None,
                "columns": max(1, int(800 / (theme.LETTER * longest + 50))),
                "symbolType": "stroke" if line else "circle",
                "symbolOpacity": 1,
                "symbolStrokeWidth": 2.5,
                "symbolSize": 250 if line else 70,
            }
        return marks.colours({each.name: each.colour for each in found}, legend=legend)

    def line_layers(self) -> list[Spec]:
        chart = self.chart
        x, colour = self.across(), self.colours()
        y = self.measure(chart.y_label)
        shift = {"xOffset": _offset()} if chart.x_scale == "category" else {}
        drawn = [marks.rule(mark.value, "y", y) for mark in self.marks]
        drawn += [marks.faint(x, y, colour, self.members())] if self.members() else []
        spans = marks.band if self.banded else marks.interval
        drawn.append(spans(x, y, colour, where=None if self.banded else "isValid(datum.low)"))
        dashes = {each.name: theme.DASHES[each.dash % 4] for each in series_of(chart)}
        for strong in sorted({each.strong for each in self.panel.series}):
            where = "datum.strong" if strong else "!datum.strong"
            path = marks.line(x, y, colour, where=where, strokeWidth=3 if strong else 1.8)
            path["encoding"]["strokeDash"] = marks.colours(dashes, legend=colour["legend"])
            drawn.append(path)
        dots = marks.dots(x, y, colour)
        dots["encoding"]["opacity"] = {"condition": {"test": "datum.dot", "value": 1}, "value": 0}
        drawn.append(dots)
        for each in drawn[len(self.marks) :]:
            each["encoding"] |= shift
        return [*drawn, *self.name_lines(y)]

    def row_layers(self, levels: Sequence[tuple[Mark, int]]) -> list[Spec]:
        chart = self.chart
        x, colour = self.measure(chart.y_label, grid=False), self.colours()
        x["axis"]["title"] = textwrap.wrap(chart.y_label, max(20, self.width // 7)) or None
        y = marks.category("place", self.names, labelLimit=190, domain=False, ticks=False)
        y["axis"] |= {"labelPadding": 8, "grid": True}
        strong = {each.name for each in self.panel.series if each.strong}
        bold = [k for k, name in enumerate(self.names) if name in strong]
        y["axis"]["labelFontWeight"] = {
            "condition": {"test": f"indexof({bold}, datum.value) >= 0",
                          "value": "bold"},
            "value": "normal",
        }  # fmt: skip
        bar = marks.interval(x, y, colour, along="x", where="isValid(datum.low)")
        bar["encoding"]["strokeWidth"] = {
            "condition": {"test": "datum.strong", "value": 3},
            "value": 2,
        }
        drawn = [marks.faint(x, y, colour, self.members())] if self.members() else []
        drawn += [bar, marks.dots(x, y, colour, size=60)]
        for each in drawn:
            each["encoding"]["yOffset"] = _offset()
        rules = [marks.rule(mark.value, "x", x) for mark in self.marks]
        return [*rules, *drawn, *self.name_columns(x, levels)]

    def name_lines(self, y: Spec) -> list[Spec]:
        """At the right above their lines, moved up where they would meet."""
        height = marks.HEIGHT if self.width > 300 else 170
        found, last = [], float("inf")
        for mark in self.marks:
            at = (1 - self.axis.share(mark.value)) * height
            place = min(at - 4, last - 13)
            last = place
            look = {"align": "right", "baseline": "bottom", "fontStyle": "italic", "dx": -2}
            encoding = {"y": {**y, "field": "value"}, "x": {"value": "width"}}
            encoding["text"] = {"field": "name"}
            row = {"value": mark.value, "name": mark.name}
            found.append(marks.text(encoding, [row], dy=place - at + 3, **look))
        return found

    def mark_levels(self) -> Iterator[tuple[Mark, int]]:
        """Marks with the level above the panel where their names stay apart."""
        ends: list[float] = []
        for mark in self.marks:
            half = len(mark.name) * theme.LETTER / 2 + 4
            at = min(max(self.axis.share(mark.value) * _PHONE, half), max(_PHONE - half, half))
            level = next((k for k, end in enumerate(ends) if end <= at - half), len(ends))
            ends[level : level + 1] = [at + half]
            yield mark, level

    def name_columns(self, x: Spec, levels: Sequence[tuple[Mark, int]]) -> list[Spec]:
        found = []
        for mark, level in levels:
            share = self.axis.share(mark.value)
            align = "left" if share < 0.2 else "right" if share > 0.8 else "center"
            encoding = {"x": {**x, "field": "value"}, "y": {"value": -4 - level * _LINE}}
            encoding["text"] = {"field": "name"}
            row = {"value": mark.value, "name": mark.name}
            look = {"align": align, "baseline": "bottom", "fontStyle": "italic"}
            found.append(marks.text(encoding, [row], **look))
        return found


def _offset() -> Spec:
    return {"field": "shift", "type": "quantitative", "scale": {"domain": [-0.5, 0.5]}}
