"""Long tables: what is embedded, and how small."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
from typing import Any

import pytest

from rbve.report.render import filter_table

COLUMNS = ("method", "seed", "return")
ROWS = [("R-BVE", 0, 0.5), ("DDQN </script>", 1, math.nan), ("R-BVE", 2, None), ("R-BVE", 3, 1.0)]
DETAILS: list[Any] = [
    {"command": f"rbve train {k}", "spec": {"seed": k, "data": {"keep": 0.1, "path": "d"}}}
    for k in range(4)
]


def content(html: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/gzip">(.*?)</script>', html, flags=re.DOTALL)
    return json.loads(gzip.decompress(base64.b64decode(text)))


def test_rows_are_embedded() -> None:
    html = filter_table("runs", COLUMNS, ROWS, ("method",), "Runs")
    found = content(html)
    assert "this table of 4 rows needs JavaScript" in html
    assert found["filters"] == ["method"]
    assert found["columns"] == ["method", "seed", "return"]
    assert found["rows"] == [
        ["R-BVE", 0, 0.5], ["DDQN </script>", 1, None], ["R-BVE", 2, None], ["R-BVE", 3, 1.0],
    ]  # fmt: skip
    assert found["details"] is None


def test_details_stay_as_they_are() -> None:
    html = filter_table("runs", COLUMNS, ROWS, (), "Runs", DETAILS)
    assert content(html)["details"] == DETAILS
    assert html == filter_table("runs", COLUMNS, ROWS, (), "Runs", DETAILS)


def test_values_of_different_types_stay_different() -> None:
    details: list[Any] = [{"a": 1, "b": {"c": [1]}}, {"a": True, "b": {"c": [1.0]}}]
    found = content(filter_table("runs", COLUMNS, ROWS[:2], (), "Runs", details))
    assert repr(found["details"]) == repr(details)


def test_details_may_hold_what_json_does_not_know() -> None:
    details = [{"x": math.inf, "y": (1, math.nan)}]
    found = content(filter_table("runs", COLUMNS, ROWS[:1], (), "Runs", details))
    assert found["details"] == [{"x": None, "y": [1, None]}]


def test_a_study_stays_small() -> None:
    rows = [(f"method {k % 11}", k % 5, k / 7) for k in range(3000)]
    spec = {f"option{j}": j for j in range(30)}
    details = [{"command": f"rbve train {k}", "spec": {**spec, "seed": k}} for k in range(3000)]
    assert len(filter_table("runs", COLUMNS, rows, ("method",), "Runs", details)) < 400_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [("a", 1)]}, "table runs, row 0: 2 cells, 3 columns"),
        ({"filters": ("metod",)}, "table runs: no column 'metod' to filter by"),
        ({"details": [1]}, "table runs: 1 details for 4 rows"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"rows": ROWS, "filters": (), "details": None} | change
    with pytest.raises(ValueError, match=message):
        filter_table("runs", COLUMNS, caption="Runs", **arguments)


def test_caption_is_escaped() -> None:
    html = filter_table("runs", COLUMNS, [], (), 'a "b" <c>')
    assert 'data-caption="a &#34;b&#34; &lt;c&gt;"' in html
    assert content(html)["rows"] == []


def test_html_around_it_stays_html() -> None:
    html = "<p>before</p>" + filter_table("runs", COLUMNS, [], (), "Runs") + "<p>after</p>"
    assert html.startswith("<p>before</p><div") or html.startswith("<p>before</p>\n<div")
    assert html.endswith("<p>after</p>")
