"""Charts as pictures: what is on them, and where."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from rbve.report.canvas import style
from rbve.report.chart import Chart, Mark, Panel, Point, Series
from rbve.report.chart_axes import categories
from rbve.report.chart_image import draw, entries, picture
from rbve.report.chart_scale import Axis, symlog

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


def figure_of(chart: Chart) -> Figure:
    with style():
        return picture(chart)


def drawn(chart: Chart, panel: int, colour: str) -> list[tuple[list[float], list[float]]]:
    lines = figure_of(chart).axes[panel].lines
    return [
        (list(each.get_xdata()), list(each.get_ydata()))
        for each in lines
        if each.get_color() == colour
    ]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def test_panels_lines_and_bands() -> None:
    left, right = figure_of(LINES).axes
    assert ([0, 10, 20], [1, 2, 3]) in drawn(LINES, 0, RED)
    assert len(left.collections) == 2
    band = left.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (0.5, 3.5)
    # A point that is not finite breaks the line.
    assert drawn(LINES, 1, RED) == [([0], [5]), ([20, 30], [7, 8])]
    assert len(right.collections) == 2


def test_words_of_a_picture() -> None:
    figure = figure_of(LINES)
    assert {"A title <b> & $x$", "one", "two"} <= set(texts(figure))
    assert "n = 3. Left out, since not finite: one 1." in texts(figure)
    left, right = figure.axes
    assert {"left", "m"} <= {text.get_text() for text in left.texts}
    assert (left.get_ylabel(), right.get_ylabel()) == ("return", "")
    assert [each.name for each in entries(LINES)] == ["one", "two"]


def test_ranges_are_of_the_panel_or_of_all() -> None:
    left, right = figure_of(LINES).axes
    assert left.get_ylim() == pytest.approx((-0.5 - 0.05 * 10, 9.5 + 0.05 * 10))
    assert right.get_ylim()[0] > 4
    left, right = figure_of(replace(LINES, same_y=True)).axes
    assert left.get_ylim() == right.get_ylim() == pytest.approx((-1, 10))


def test_rows() -> None:
    (axes,) = figure_of(ROWS).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["one", "two"]
    assert ([500.0], [1.0]) in drawn(ROWS, 0, BLUE)
    assert ([100.0, 900.0], [1.0, 1.0]) in drawn(ROWS, 0, BLUE)
    faint = [x for (x,), (y,) in drawn(ROWS, 0, RED) if y != 0]
    assert faint == [0.0, 3.0]
    assert axes.get_xscale() == "symlog"
    assert axes.get_xlim()[0] <= 0
    assert "0" in [axes.xaxis.get_major_formatter()(tick, 0) for tick in axes.get_xticks()]
    assert "reference" in [text.get_text() for text in axes.texts]
    # Rows carry the names of their series: no legend.
    assert "one" not in texts(figure_of(ROWS))


def test_series_that_share_a_row_stand_apart() -> None:
    panel = Panel("", (line("a", RED, [1]), line("b", BLUE, [1])))
    shared = replace(ROWS, panels=(panel,), y_scale="linear")
    (_, (first,)), (_, (second,)) = drawn(shared, 0, RED)[-1], drawn(shared, 0, BLUE)[-1]
    assert (first, second) == pytest.approx((-0.2, 0.2))
    assert {"a", "b"} <= set(texts(figure_of(shared)))


def test_categories_on_the_x_axis() -> None:
    points = tuple(Point(x, 1.0, 0.0, 2.0, 3) for x in ("none", "binary"))
    panel = Panel("", (Series("a", RED, points, (("late", 3.0),)),))
    chart = replace(LINES, panels=(panel,), x_scale="category")
    assert categories(chart) == ["none", "binary", "late"]
    assert ([0.0, 1.0], [1.0, 1.0]) in drawn(chart, 0, RED)
    assert ([1.0, 1.0], [0.0, 2.0]) in drawn(chart, 0, RED)  # an interval
    assert ([2.0], [3.0]) in drawn(chart, 0, RED)


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


def test_places_on_an_axis_are_matplotlibs() -> None:
    axis = Axis([0.0, 0.02, 400.0], "symlog")
    axes = Figure().add_axes((0, 0, 1, 1))
    axis.put_on(axes, "y")
    values = [0.0, 0.005, 0.01, 1.0, 1000.0]
    own = np.array([axis.at(v) for v in values])
    theirs = np.array([axes.transData.transform((0, v))[1] for v in values])
    shares = (own - axis.at(axis.low)) / (axis.at(axis.high) - axis.at(axis.low))
    low, high = axes.transAxes.transform((0, 0))[1], axes.transAxes.transform((0, 1))[1]
    assert shares == pytest.approx((theirs - low) / (high - low), abs=1e-3)


@pytest.mark.parametrize("chart", [LINES, ROWS], ids=["lines", "rows"])
def test_files(chart: Chart) -> None:
    png, svg = draw(chart)
    assert draw(chart) == (png, svg)
    pixels = imread(io.BytesIO(png))[..., :3]
    assert pixels[0, 0].tolist() == [1, 1, 1]
    for colour in (RED, BLUE):
        wanted = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        assert (np.abs(pixels - wanted).max(axis=-1) < 0.02).sum() > 40
    assert svg.startswith(b"<?xml")
    assert b"one" in svg


@pytest.mark.parametrize("kind", ["lines", "rows"])
@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
@pytest.mark.parametrize("ys", [[], [0.0], [math.nan], [5.0, 5.0], [1e-300, 1e300], [-1.0, 1e-9]])
def test_awkward_values_are_drawn(kind: str, scale: str, ys: list[float]) -> None:
    points = tuple(Point(str(k), y, y, y, 1) for k, y in enumerate(ys))
    panel = Panel("", (Series("a", RED, points),), (Mark(1.0, "m"), Mark(math.inf, "never")))
    chart = Chart("c", "t", "n", kind, "", "y", (panel,), "category", scale)
    assert draw(chart)[0].startswith(b"\x89PNG")
