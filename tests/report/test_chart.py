"""Charts as data: what is told in note_of, what JSON and CSV hold."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace

import pytest

from rbve.report.chart import Chart, Mark, Panel, Point, Series, figure_of, near_marks, note_of
from rbve.report.figure import as_csv, numbers, packed

NAN = math.nan
LOST = Series(
    "DDQN",
    "#0072B2",
    (Point(1, 2.0, 1.0, 3.0, 5, "why"), Point(2, NAN, NAN, math.inf), Point(3, -1.0)),
    ((1, 2.5), (1, math.inf)),
)
CHART = Chart(
    "name",
    "Title",
    "n = 5.",
    "lines",
    "updates",
    "return",
    (
        Panel("a", (LOST,), (Mark(5.0, "near"), Mark(13.6, "far"))),
        Panel("b", (Series("BC", "#777777", (Point(1, 0.0), Point(2, 100.0))),), (Mark(200, "b"),)),
    ),
)


def test_json_holds_what_json_knows() -> None:
    content = json.loads(json.dumps(packed(figure_of(CHART)), allow_nan=False))
    names = ("panel", "series", "x", "y", "low", "high", "n", "note")
    rows = [dict(zip(content["fields"], row, strict=True)) for row in content["rows"]]
    assert [tuple(row[name] for name in names) for row in rows[:3]] == [
        ("a", "DDQN", 1, 2.0, 1.0, 3.0, 5, "why"),
        ("a", "DDQN", 2, None, None, None, 0, ""),
        ("a", "DDQN", 3, -1.0, None, None, 0, ""),
    ]
    assert content["columns"]["x"] == "updates"
    assert content["columns"]["y"] == "return"


def test_what_is_not_drawn_is_told() -> None:
    # Drawn values reach from −1 to 3: marks up to 8 further are near.
    assert (
        note_of(CHART) == "n = 5. Left out, since not finite: DDQN 2. Off the axis: far 13.6 (a)."
    )
    assert figure_of(CHART).note == note_of(CHART)
    assert near_marks(CHART, CHART.panels[0]) == [Mark(5.0, "near")]


def test_a_log_axis_shows_positive_values_only() -> None:
    chart = replace(CHART, y_scale="log", panels=CHART.panels[:1])
    assert "not finite or not positive: DDQN 3." in note_of(chart)
    assert [mark.name for mark in near_marks(chart, chart.panels[0])] == ["near", "far"]


@pytest.mark.parametrize(
    ("value", "shown"), [(10.9, True), (11.1, False), (-8.9, True), (-9.1, False)]
)
def test_marks_in_reach(value: float, shown: bool) -> None:
    panel = Panel("", (LOST,), (Mark(value, "m"),))
    assert bool(near_marks(replace(CHART, panels=(panel,)), panel)) == shown


def test_panels_of_one_range_have_one_reach() -> None:
    chart = replace(CHART, same_y=True)
    assert [m.name for m in near_marks(chart, chart.panels[0])] == ["near", "far"]


def test_values_that_are_all_equal_have_a_reach() -> None:
    panel = Panel("", (Series("s", "#000000", (Point(1, 50.0),)),), (Mark(54, "m"), Mark(56, "f")))
    assert [m.name for m in near_marks(replace(CHART, panels=(panel,)), panel)] == ["m"]


def test_csv() -> None:
    lines = list(csv.DictReader(io.StringIO(as_csv(figure_of(CHART)))))
    assert len(lines) == 5
    first = {"chart": "name", "panel": "a", "series": "DDQN", "x": "1", "y": "2.0"}
    assert lines[0] == first | {"low": "1.0", "high": "3.0", "n": "5", "note": "why"}


def test_numbers_under_the_figure() -> None:
    assert list(figure_of(CHART).columns.values()) == [
        "panel", "series", "updates", "return", "low", "high", "n", "note",
    ]  # fmt: skip
    assert numbers(figure_of(CHART))[:2] == [
        ["a", "DDQN", "1", "2", "1", "3", "5", "why"],
        ["a", "DDQN", "2", "–", "–", "–", "0", ""],
    ]
