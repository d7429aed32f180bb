"""A chart as a figure: series over x as lines, or a row per category with its value along."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from rbve.report import chart as charts
from rbve.report import marks, theme
from rbve.report.axis import FEW, Axis
from rbve.report.chart import Chart, Mark, Series, categories, near_marks, places, series_of, shows
from rbve.report.figure import Entry, Figure, Spec

_MANY = 12  # points of a line from which on dots are left out
_WIDTHS = {1: 620, 2: 330, 3: 225}  # pixels of a picture's panel by columns
_PHONE = 150  # pixels of a panel where it is narrow: names of marks stay apart even there
_LINE = 15  # pixels per line of labels
_OFFSET = {"field": "shift", "type": "quantitative", "scale": {"domain": [-0.5, 0.5]}}


def figure_of(chart: Chart) -> Figure:
    """The chart drawn: its points are the rows."""
    count, line, found = len(chart.panels), chart.kind == "lines", series_of(chart)
    columns = count if count <= 3 else 2 if count == 4 else 3
    panels = [_Drawn(chart, index, columns) for index in range(count)]
    titled = any(panel.title for panel in chart.panels)
    heads = {"panel": "panel", "x": chart.x_label or "row", "y": chart.y_label}
    names = charts.COLUMNS if titled else charts.COLUMNS[1:]
    entries = (Entry(s.name, s.colour, line, s.dash, s.marker == "ring", s.strong) for s in found)
    return Figure(
        name=chart.name,
        title=chart.title,
        note=charts.words(chart),
        spec=marks.side_by_side([panel.view() for panel in panels], columns),
        rows=[row for panel in panels for row in panel.rows],
        columns={name: heads.get(name, name) for name in names},
        legend=tuple(entries) if len(found) > 1 else (),
        folded=charts.named_by_rows(chart),
    )


class _Drawn:
    """A panel: the rows of its points, and the view that draws them."""

    def __init__(self, chart: Chart, index: int, columns: int) -> None:
        self.chart, self.index = chart, index
        self.panel = chart.panels[index]
        self.width = _WIDTHS[columns]
        self.height = marks.HEIGHT if self.width > 300 else 170
        self.marks = sorted(near_marks(chart, self.panel))
        shared = chart.panels if chart.same_y else [self.panel]
        self.found = charts.values(chart, shared)
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

    def rows_of(self, each: Series) -> Iterator[dict[str, Any]]:
        told = [charts.drawn(self.chart, p.x, p.y) for p in each.points]
        few = len(each.points) <= _MANY or self.chart.kind == "rows"
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

    def members(self) -> Iterator[dict[str, Any]]:
        """Single runs; in a row a little above and below, so that equals stay apart."""
        for each in self.panel.series:
            seen: list[str] = []
            every = [str(x) for x, _ in each.members]
            for x, y in each.members:
                if charts.drawn(self.chart, x, y):
                    row = {"series": each.name, "x": x, "y": y, **self.place(each, x)}
                    if self.chart.kind == "rows" and (n := every.count(str(x))) > 1:
                        row["shift"] += 0.2 * (seen.count(str(x)) / (n - 1) - 0.5)
                    seen.append(str(x))
                    yield row

    # Channels

    @cached_property
    def x_axis(self) -> Axis:
        """Of numbers; all panels have the same."""
        scale = self.chart.x_scale
        every = (x for p in self.chart.panels for each in p.series for x in places(each).values())
        found = sorted({float(x) for x in every if shows(x, scale)})
        axis = Axis(found, scale, pad=0.02 if len(found) > _MANY else 0.07)
        if scale == "log" and len(found) <= FEW:
            axis.one_by_one(found)
        return axis

    def measure(self) -> Spec:
        """The channel of values; a linear one of its own fits what the legend leaves."""
        fixed = self.chart.y_scale != "linear" or self.chart.same_y
        flat = len(set(self.found) | {mark.value for mark in self.marks}) < 2
        big = any(abs(value) > 1e100 for value in self.found)
        ticks, lines = self.axis.ticks if fixed or flat or big else None, self.chart.kind == "lines"
        found = marks.measure("y", self.chart.y_label, ticks=ticks, grid=lines)
        if not lines:
            title = textwrap.wrap(self.chart.y_label, max(20, self.width // 7))
            found["axis"]["title"] = title or None
        return found

    def across(self) -> Spec:
        """The channel of x of lines."""
        chart = self.chart
        if chart.x_scale != "category":
            return marks.measure("at", chart.x_label, ticks=self.x_axis.ticks, grid=False)
        each = self.width / max(1, len(self.names))
        turned = max((len(name) for name in self.names), default=0) * theme.LETTER > each - 4
        angle = -35 if turned else 0
        return marks.category("place", self.names, chart.x_label, labelLimit=190, labelAngle=angle)

    def colours(self) -> Spec:
        found, line, legend = series_of(self.chart), self.chart.kind == "lines", None
        if len(found) > 1 and not charts.named_by_rows(self.chart):
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

    # Layers

    def view(self) -> Spec:
        rows = self.chart.kind == "rows"
        names = list(self.names_above() if rows else self.names_at_right())
        layers = self.row_layers() if rows else self.line_layers()
        if not self.found:
            place = {"x": {"value": 40}, "y": {"value": 40}, "text": {"value": "no data"}}
            layers = [marks.text(place, [{}], fontStyle="italic"), *layers]
        most = max(map(len, self.holders.values()), default=1)
        step: Spec = {"step": max(marks.STEP, 13 * most + 4), "for": "position"}
        found = marks.view(
            [*layers, *(text for text, _ in names)],
            textwrap.wrap(self.panel.title, int(self.width / theme.LETTER)),
            width=self.width,
            height=step if rows else self.height,
            where={"field": "k", "equal": self.index},
            above=8 + _LINE * max((lines for _, lines in names), default=0),
        )
        if self.chart.y_scale == "log":  # what has no place there is not drawn
            found["transform"] += [
                {"calculate": f"datum.{field} > 0 ? datum.{field} : {other}", "as": field}
                for field, other in (("y", "null"), ("low", "datum.y"), ("high", "datum.y"))
            ]
        return found

    def line_layers(self) -> list[Spec]:
        x, y, colour = self.across(), self.measure(), self.colours()
        drawn = self.faint(x, y, colour)
        if self.banded:
            span = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}
            drawn.append(marks.layer({"type": "area", "opacity": 0.14, "line": False}, span))
        else:
            drawn.append(marks.interval(x, y, colour, where="isValid(datum.low)"))
        dashes = {each.name: theme.DASHES[each.dash % 4] for each in series_of(self.chart)}
        dash = marks.colours(dashes, legend=colour["legend"])
        for strong in sorted({each.strong for each in self.panel.series}):
            look = {"type": "line", "strokeWidth": 3 if strong else 1.8, "strokeJoin": "round"}
            where = "datum.strong" if strong else "!datum.strong"
            path = {"x": x, "y": y, "color": colour, "strokeDash": dash}
            drawn.append(marks.layer(look, path, where=where))
        seen = {"condition": {"test": "datum.dot", "value": 1}, "value": 0}
        drawn.append(_dots(x, y, colour, 34, opacity=seen))
        for each in drawn if self.chart.x_scale == "category" else ():
            each["encoding"]["xOffset"] = _OFFSET
        return [*(marks.rule(mark.value, "y", y) for mark in self.marks), *drawn]

    def row_layers(self) -> list[Spec]:
        x, colour = self.measure(), self.colours()
        strong = {each.name for each in self.panel.series if each.strong}
        bold = [k for k, name in enumerate(self.names) if name in strong]
        test = {"test": f"indexof({bold}, datum.value) >= 0", "value": "bold"}
        y = marks.category("place", self.names, labelLimit=190, domain=False, ticks=False)
        y["axis"] |= {"labelPadding": 8, "grid": True}
        y["axis"]["labelFontWeight"] = {"condition": test, "value": "normal"}
        bar = marks.interval(x, y, colour, along="x", where="isValid(datum.low)")
        thick = {"condition": {"test": "datum.strong", "value": 3}, "value": 2}
        bar["encoding"]["strokeWidth"] = thick
        drawn = [*self.faint(x, y, colour), bar, _dots(x, y, colour, 60)]
        for each in drawn:
            each["encoding"]["yOffset"] = _OFFSET
        return [*(marks.rule(mark.value, "x", x) for mark in self.marks), *drawn]

    def faint(self, x: Spec, y: Spec, colour: Spec) -> list[Spec]:
        """Single runs behind what is told of them."""
        look, found = {"type": "circle", "size": 22, "opacity": 0.3}, list(self.members())
        return [marks.layer(look, {"x": x, "y": y, "color": colour}, found)] if found else []

    # Names of marks, with the lines they take above the panel

    def names_at_right(self) -> Iterator[tuple[Spec, int]]:
        """Above their lines, moved up where they would meet."""
        y, last = self.measure(), float("inf")
        for mark in self.marks:
            at = (1 - self.axis.share(mark.value)) * self.height
            last = min(at - 4, last - 13)
            place = {"y": {**y, "field": "value"}, "x": {"value": "width"}}
            yield _name(mark, place, align="right", dx=-2, dy=last - at + 3), 0

    def names_above(self) -> Iterator[tuple[Spec, int]]:
        """At levels where they stay apart."""
        x, ends = self.measure(), list[float]()
        for mark in self.marks:
            share, half = self.axis.share(mark.value), len(mark.name) * theme.LETTER / 2 + 4
            at = min(max(share * _PHONE, half), max(_PHONE - half, half))
            level = next((k for k, end in enumerate(ends) if end <= at - half), len(ends))
            ends[level : level + 1] = [at + half]
            align = "left" if share < 0.2 else "right" if share > 0.8 else "center"
            place = {"x": {**x, "field": "value"}, "y": {"value": -4 - level * _LINE}}
            yield _name(mark, place, align=align), level + 1


def _name(mark: Mark, place: Spec, **look: Any) -> Spec:
    encoding = {**place, "text": {"field": "name"}}
    return marks.text(encoding, [mark._asdict()], baseline="bottom", fontStyle="italic", **look)


def _dots(x: Spec, y: Spec, colour: Spec, size: int, **more: Spec) -> Spec:
    """Hollow where the row has a true `ring`."""
    fill = {**colour, "condition": {"test": "datum.ring", "value": {"expr": "card"}}}
    mark = {"type": "point", "size": size, "strokeWidth": 1.6, "opacity": 1}
    return marks.layer(mark, {"x": x, "y": y, "color": colour, "fill": fill, **more}, name="points")
