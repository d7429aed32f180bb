"""Charts as figures: what is drawn, and where."""

from __future__ import annotations

import itertools
import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from support.images import pixels
from support.scene import Scene, scene

from rbve.report.chart import Chart, Mark, Panel, Point, Series, categories, figure_of
from rbve.report.figure import png, svg
from rbve.report.marks import Axis, symlog

RED, BLUE = "#d62410", "#0072b2"


def line(name: str, colour: str, ys: list[float], half: float | None = 0.5) -> Series:
    points = (
        Point(10 * k, y, *((None, None) if half is None else (y - half, y + half)), 3)
        for k, y in enumerate(ys)
    )
    return Series(name, colour, tuple(points))


LINES = Chart(
    "lines",
    "A title <b> & $x$",
    "n = 3.",
    "lines",
    "updates",
    "return",
    (
        Panel("left", (line("one", RED, [1, 2, 3]), line("two", BLUE, [0, 0, 9])), (Mark(4, "m"),)),
        Panel("right", (line("one", RED, [5, math.nan, 7, 8]),)),
    ),
)
ROWS = Chart(
    "rows",
    "Rows",
    "n = 2.",
    "rows",
    "",
    "error",
    (
        Panel(
            "",
            (
                Series("one", RED, (Point("one", 0.0, n=2),), (("one", 0.0), ("one", 3.0))),
                Series("two", BLUE, (Point("two", 500.0, 100.0, 900.0),)),
            ),
            (Mark(50.0, "reference"),),
        ),
    ),
    "category",
    "symlog",
)


def drawn(chart: Chart) -> list[Scene]:
    return scene(figure_of(chart))[0]


def spots(view: Scene, colour: str) -> list[tuple[float, float]]:
    """Values at which the points of a series stand."""
    return [
        (round(view.value("x", each["x"]), 3), round(view.value("y", each["y"]), 3))
        for each in view.marks("symbol", colour, points=True)
    ]


def test_panels_lines_and_bands() -> None:
    left, right = drawn(LINES)
    assert spots(left, RED) == [(0, 1), (10, 2), (20, 3)]
    line = left.marks("line", RED)
    places = [(each["x"], each["y"]) for each in left.marks("symbol", RED, points=True)]
    assert [(each["x"], each["y"]) for each in line] == places
    band = left.marks("area", RED)
    ends = [round(left.value("y", each[end]), 3) for end in ("y", "y2") for each in band]
    assert (min(ends), max(ends)) == (0.5, 3.5)
    assert len(left.marks("area")) == 6
    # A point that is not finite breaks the line.
    assert [each["defined"] for each in right.marks("line", RED)] == [True, False, True, True]
    assert spots(right, RED) == [(0, 5), (20, 7), (30, 8)]


def test_words_of_a_picture() -> None:
    views, texts = scene(figure_of(LINES))
    assert {"A title <b> & $x$", "one", "two"} <= set(texts)
    assert "n = 3. Left out, since not finite: one 1." in texts
    left, right = views
    assert {"left", "m", "return", "updates"} <= set(left.texts())
    assert "right" in right.texts()
    assert [entry.name for entry in figure_of(LINES).legend] == ["one", "two"]


def test_ranges_are_of_the_panel_or_of_all() -> None:
    left, right = drawn(LINES)
    assert left.value("y", left.height) == pytest.approx(-0.5 - 0.05 * 10, abs=0.3)
    assert left.value("y", 0) == pytest.approx(9.5 + 0.05 * 10, abs=0.3)
    assert right.value("y", right.height) > 4
    left, right = drawn(replace(LINES, same_y=True))
    for view in (left, right):
        assert (view.value("y", view.height), view.value("y", 0)) == pytest.approx((-1, 10))


def test_rows() -> None:
    (view,) = drawn(ROWS)
    assert [text for _, text in view.axes["y"]] == ["one", "two"]
    axis = Axis([0.0, 3.0, 100.0, 900.0, 500.0, 50.0], "symlog")
    (dot,) = view.marks("symbol", BLUE, points=True)
    assert dot["x"] == pytest.approx(axis.share(500.0) * view.width, abs=0.01)
    assert dot["y"] == pytest.approx(view.axes["y"][1][0], abs=1)
    (bar,) = view.marks("rule", BLUE)
    ends = [axis.share(value) * view.width for value in (100.0, 900.0)]
    assert sorted((bar["x"], bar["x2"])) == pytest.approx(ends, abs=0.01)
    assert bar["y"] == dot["y"]
    faint = view.marks("symbol", RED, points=False)
    assert [each["x"] for each in faint] == pytest.approx(
        [axis.share(value) * view.width for value in (0.0, 3.0)], abs=0.01
    )
    assert faint[0]["y"] < view.axes["y"][0][0] < faint[1]["y"]  # equal ones would stay apart
    assert faint[0]["opacity"] < 0.5
    assert "0" in [text for _, text in view.axes["x"]]
    assert "reference" in view.texts()
    # Rows carry the names of their series: no legend.
    assert scene(figure_of(ROWS))[1].count("one") == 1


def test_series_that_share_a_row_stand_apart() -> None:
    panel = Panel("", (line("a", RED, [1]), line("b", BLUE, [1])))
    shared = replace(ROWS, panels=(panel,), y_scale="linear")
    (view,) = drawn(shared)
    (first,), (second,) = (view.marks("symbol", each, points=True) for each in (RED, BLUE))
    ((middle, _),) = view.axes["y"]
    assert second["y"] - first["y"] > 8
    assert (first["y"] + second["y"]) / 2 == pytest.approx(middle, abs=1)
    assert {"a", "b"} <= set(scene(figure_of(shared))[1])


def test_categories_on_the_x_axis() -> None:
    points = tuple(Point(x, 1.0, 0.0, 2.0, 3) for x in ("none", "binary"))
    panel = Panel("", (Series("a", RED, points, (("late", 3.0),)),))
    chart = replace(LINES, panels=(panel,), x_scale="category")
    assert categories(chart.panels) == ["none", "binary", "late"]
    (view,) = drawn(chart)
    assert [text for _, text in view.axes["x"]] == ["none", "binary", "late"]
    places = [place for place, _ in view.axes["x"]]
    dots = view.marks("symbol", RED, points=True)
    assert [each["x"] for each in dots] == pytest.approx(places[:2], abs=1)
    ends = [view.value("y", bar[end]) for bar in view.marks("rule", RED) for end in ("y", "y2")]
    assert ends == pytest.approx([0, 2] * 2, abs=0.01)  # intervals
    (single,) = view.marks("symbol", RED, points=False)
    assert single["x"] == pytest.approx(places[2], abs=1)
    assert view.value("y", single["y"]) == pytest.approx(3, abs=0.01)


def test_what_has_no_place_on_a_log_axis_is_not_drawn() -> None:
    points = (Point(1, 2.0, -1.0, 3.0), Point(10, -1.0, -2.0, 4.0), Point(100, 0.5, 0.1, 3.0))
    panel = Panel("", (Series("a", RED, (Point(0, 1.0), *points)),))
    (view,) = drawn(replace(LINES, panels=(panel,), x_scale="log", y_scale="log"))
    assert len(view.marks("symbol", RED, points=True)) == 2
    first, _ = view.marks("rule", RED)
    assert min(abs(first["y"] - d["y"]) for d in view.marks("symbol", RED)) < 1e-6  # from y up


def test_hollow_dots_dashes_and_what_to_look_at() -> None:
    panel = Panel("", (
        replace(line("a", RED, [1, 2, 3]), marker="ring", dash=1),
        replace(line("b", BLUE, [3, 2, 1]), strong=True),
    ))  # fmt: skip
    (view,) = drawn(replace(LINES, panels=(panel,)))
    ring = view.marks("symbol", RED, points=True)[0]
    assert (ring["fill"], ring["stroke"]) == ("#ffffff", RED)
    assert view.marks("line", RED)[0]["strokeDash"] == [6, 2.5]
    assert view.marks("line", BLUE)[0]["strokeWidth"] > view.marks("line", RED)[0]["strokeWidth"]
    # It is drawn over the others.
    assert [each["stroke"] for each in view.marks("line")][-1] == BLUE


def test_an_empty_panel_says_so() -> None:
    (view,) = drawn(replace(LINES, panels=(Panel("", ()),)))
    assert "no data" in view.texts()


@pytest.mark.parametrize("values", [(1.0, 1.05, 1.1), (0.0, 4.0, 4.01), (8.9, 9.0, 9.0)])
@pytest.mark.parametrize("kind", ["lines", "rows"])
def test_names_of_marks_stay_apart(kind: str, values: tuple[float, ...]) -> None:
    names = ("random", "behaviour mean", "online reference")
    marks = tuple(Mark(value, name) for value, name in zip(values, names, strict=True))
    series = line("one", RED, [0, 9, 5])
    if kind == "rows":
        series = Series("one", RED, (Point("one", 0.0), Point("two", 9.0)))
    scale = "category" if kind == "rows" else "linear"
    chart = replace(LINES, panels=(Panel("", (series,), marks),), kind=kind, x_scale=scale)
    (view,) = drawn(chart)
    texts = view.marks("text")
    assert sorted(each["text"] for each in texts) == sorted(names)
    boxes = [box(each) for each in texts]
    for (x1, y1, x2, y2), (u1, v1, u2, v2) in itertools.combinations(boxes, 2):
        assert min(x2, u2) <= max(x1, u1) or min(y2, v2) <= max(y1, v1)


def box(text: dict[str, object]) -> tuple[float, float, float, float]:
    """Of a text whose letters stand on its place."""
    wide = 6.4 * len(str(text["text"]))
    x, y = (float(str(text.get(p, 0))) + float(str(text.get(f"d{p}", 0))) for p in "xy")
    left = {"left": 0.0, "center": wide / 2, "right": wide}[str(text["align"])]
    return x - left, y - 12, x - left + wide, y


def test_symlog_ticks() -> None:
    assert symlog([0.0, 0.02, 400.0]) == (0.01, [0, *(10.0**k for k in range(-2, 4))])
    threshold, ticks = symlog([1e-30, 1e9])
    assert threshold == pytest.approx(1e-3)
    assert len(ticks) <= 8
    assert symlog([1e-7, 2.0]) == (1e-3, [0, *(10.0**k for k in range(-3, 2))])
    assert symlog([1e-7, 2e-5])[0] == pytest.approx(1e-5)  # unless nothing is larger
    assert symlog([-5.0, 20.0])[1] == [-10, -1, 0, 1, 10, 100]  # each side as far as it is needed
    assert symlog([-5e-9, 20.0])[0] == pytest.approx(1e-2)  # near 0 matters less where signs differ
    # What is small stays visible beside what ran away.
    assert symlog([-700.0, 0.02, 3.0, 1e8]) == (1e-2, [-1e4, -1, 0, 1, 1e4, 1e8])
    threshold, ticks = symlog([-1.0, 0.02, 1e30])
    assert threshold == pytest.approx(1e-2)
    assert len(ticks) <= 9
    assert symlog([-50.0, -2.0])[1] == [-100, -10, -1, 0]


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
@pytest.mark.parametrize(
    "found",
    [
        [1.0, 2.0, 50.0],
        [1e-9, 0.02, 400.0],
        [0.5, 3.0, 1e30],
        [-700.0, 0.02, 3.0, 1e8],
        [-2.0, -0.1],
    ],
)
def test_places_on_an_axis_are_vegas(scale: str, found: list[float]) -> None:
    known = [value for value in found if scale != "log" or value > 0] or [1.0]
    axis = Axis(known, scale)  # type: ignore[arg-type]
    own = [axis.share(value) for value in known]
    assert own == sorted(own)
    points = tuple(Point(k, value) for k, value in enumerate(known))
    panel = Panel("", (Series("a", RED, points),))
    chart = replace(LINES, panels=(panel,), y_scale=scale, same_y=True)
    (view,) = drawn(chart)
    dots = view.marks("symbol", RED, points=True)
    shares = [1 - each["y"] / view.height for each in dots]
    assert shares == pytest.approx(own, abs=1e-3)


@pytest.mark.parametrize("chart", [LINES, ROWS], ids=["lines", "rows"])
def test_files(chart: Chart) -> None:
    figure = figure_of(chart)
    first, drawing = png(figure), svg(figure)
    assert (png(figure_of(chart)), svg(figure_of(chart))) == (first, drawing)
    image = pixels(first).astype(int)
    assert image[0, 0].tolist() == [255, 255, 255]
    for colour in (RED, BLUE):
        wanted = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
        assert (np.abs(image - wanted).max(axis=-1) < 5).sum() > 40
    root = ElementTree.fromstring(drawing)
    assert root.tag.endswith("svg")
    assert "one" in [text.text for text in root.iter() if text.tag.endswith("text")]


@pytest.mark.parametrize("kind", ["lines", "rows"])
@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
@pytest.mark.parametrize("ys", [[], [0.0], [math.nan], [5.0, 5.0], [1e-300, 1e300], [-1.0, 1e-9]])
def test_awkward_values_are_drawn(kind: str, scale: str, ys: list[float]) -> None:
    points = tuple(Point(str(k), y, y, y, 1) for k, y in enumerate(ys))
    panel = Panel("", (Series("a", RED, points),), (Mark(1.0, "m"), Mark(math.inf, "never")))
    chart = Chart("c", "t", "n", kind, "", "y", (panel,), "category", scale)
    drawing = svg(figure_of(chart))
    assert "<svg" in drawing
    assert "NaN" not in drawing
    shown = [y for y in ys if math.isfinite(y) and (scale != "log" or y > 0)]
    assert len(drawn(chart)[0].marks("symbol", RED, points=True)) == len(shown)
