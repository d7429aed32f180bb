"""Tables in Chromium: search, filters, sorting, pages, details."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import Tab, needs_browser

from rbve.report.page import Section, write
from rbve.report.render import filter_table

pytestmark = needs_browser

METHODS = ("R-BVE", "DDQN <b>", "CQL")
ROWS = [
    (METHODS[k % 3], f"job-{k}", k % 5, math.nan if k == 7 else (37 * k) % 1000 / 2)
    for k in range(1230)
]
DETAILS = [
    {"command": f"rbve train --seed {k}", "spec": {"seed": k, "gamma": 0.99}} for k in range(1230)
]
PLAIN = """<div class="scroll"><table class="filterable" data-filters="verdict" id="claims">
<thead><tr><th>verdict</th><th>claim</th><th>n</th></tr></thead><tbody>
<tr><td>partly</td><td>first claim</td><td>1,000</td></tr>
<tr><td>not here</td><td>second claim</td><td>9</td></tr>
<tr><td>partly</td><td>third</td><td>20</td></tr></tbody></table></div>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    columns = ("method", "job", "seed", "return")
    long = filter_table("runs", columns, ROWS, ("method", "seed"), "Every run", DETAILS)
    sections = [Section("a", "Plain", PLAIN), Section("b", "Long", "", after=long)]
    return write(sections, tmp_path_factory.mktemp("page"), "Title", "about")


@pytest.fixture
def tab(browser: Tab, page: Path) -> Iterator[Tab]:
    browser.open(page)
    yield browser
    assert browser.errors == []


def lines(tab: Tab, table: str = "#runs") -> list[list[str]]:
    return tab.run(
        f"[...document.querySelectorAll('{table} tbody tr')].filter(r => !r.hidden)"
        ".map(r => [...r.cells].map(c => c.textContent))"
    )


def choose(tab: Tab, label: str, value: str, place: str = "#runs") -> None:
    """Through the control with this label."""
    tab.run(
        "(() => { const label = [...document.querySelectorAll('.controls label')]"
        f".filter(l => document.querySelector('{place}').parentNode.contains(l))"
        f".find(l => l.textContent.startsWith('{label}'));"
        f"label.control.value = '{value}';"
        "for (const kind of ['input', 'change']) label.control.dispatchEvent(new Event(kind)); })()"
    )


def count(tab: Tab, place: str = "#runs") -> str:
    return tab.texts(f"{place} .count")[0]


def test_the_first_page(tab: Tab) -> None:
    found = lines(tab)
    assert len(found) == 50
    assert found[1] == ["+", "DDQN <b>", "job-1", "1", "18.5"]
    assert found[7] == ["+", "DDQN <b>", "job-7", "2", "–"]
    assert count(tab) == "1,230 of 1,230"
    assert "rows 1 to 50" in tab.texts("#runs .pages")[0]


def test_pages_turn(tab: Tab) -> None:
    tab.click("#runs .pages button:nth-child(4)")
    assert lines(tab)[0][2] == "job-50"
    tab.click("#runs .pages button:last-child")
    assert [line[2] for line in lines(tab)] == [f"job-{k}" for k in range(1200, 1230)]
    disabled = "[...document.querySelectorAll('#runs .pages button')].map(b => b.disabled)"
    assert tab.run(disabled) == [False, False, True, True]


def test_filters_and_search(tab: Tab) -> None:
    choose(tab, "method", "DDQN <b>")
    choose(tab, "seed", "3")
    expected = [k for k in range(1230) if k % 3 == 1 and k % 5 == 3]
    assert count(tab) == f"{len(expected)} of 1,230"
    assert [line[2] for line in lines(tab)] == [f"job-{k}" for k in expected[:50]]
    choose(tab, "Search", "JOB-103 ddqn")
    assert [line[2] for line in lines(tab)] == ["job-103", "job-1033"]
    choose(tab, "Search", "nothing like it")
    assert count(tab) == "0 of 1,230"
    assert lines(tab) == [["No row fits."]]
    for label, value in (("Search", ""), ("method", "all"), ("seed", "all")):
        choose(tab, label, value)
    assert count(tab) == "1,230 of 1,230"


def test_sorting(tab: Tab) -> None:
    header = "#runs thead th:nth-child(5)"
    sort = f"document.querySelector('{header}').getAttribute('aria-sort')"
    known = [row[3] for row in ROWS if not math.isnan(row[3])]
    tab.click(f"{header} button")
    assert tab.run(sort) == "ascending"
    assert [float(line[4]) for line in lines(tab)] == sorted(known)[:50]
    tab.click(f"{header} button")
    assert tab.run(sort) == "descending"
    assert [float(line[4]) for line in lines(tab)] == sorted(known, reverse=True)[:50]
    tab.click("#runs .pages button:last-child")
    assert lines(tab)[-1][2] == "job-7"  # without a value: last either way
    tab.click("#runs thead th:nth-child(3) button")
    assert [line[2] for line in lines(tab)][9:12] == ["job-9", "job-10", "job-11"]
    assert tab.run(sort) is None


def test_details_open_below_their_row(tab: Tab) -> None:
    opener = "#runs tbody tr:nth-child(3) .opener button"
    expanded = f"document.querySelector('{opener}').getAttribute('aria-expanded')"
    assert tab.run(expanded) == "false"
    tab.click(opener)
    assert tab.run(expanded) == "true"
    assert tab.texts("#runs tr.details h4") == ["command", "spec"]
    command, spec = tab.texts("#runs tr.details pre")
    assert command == "rbve train --seed 2"
    assert spec.replace("\n", "") == '{ "seed": 2, "gamma": 0.99}'
    tab.click(opener)
    assert tab.texts("#runs tr.details") == []


def test_a_plain_table_gets_controls(tab: Tab) -> None:
    place = "[aria-label='Filter: table']"
    assert [line[2] for line in lines(tab, "#claims")] == ["1,000", "9", "20"]
    tab.click("#claims th:nth-child(3) button")
    assert [line[2] for line in lines(tab, "#claims")] == ["9", "20", "1,000"]
    tab.run(
        "(() => { const list = document.querySelector('[id=claims-by-0]'); list.value = 'partly';"
        "list.dispatchEvent(new Event('change')); })()"
    )
    assert [line[1] for line in lines(tab, "#claims")] == ["third", "first claim"]
    assert count(tab, place) == "2 of 3"
    tab.run(
        "(() => { const box = document.querySelector('#claims-search'); box.value = 'CLAIM';"
        "box.dispatchEvent(new Event('input')); })()"
    )
    assert [line[1] for line in lines(tab, "#claims")] == ["first claim"]
    assert count(tab, place) == "1 of 3"


def test_controls_are_labelled_and_reached_by_keys(tab: Tab) -> None:
    bare = "[...document.querySelectorAll('input, select')].filter(e => !e.labels.length).length"
    assert tab.run(bare) == 0
    tab.run("document.querySelector('#runs-search').focus()")
    for letter in "job-12":
        tab.press(letter)
    assert count(tab) == f"{sum('job-12' in row[1] for row in ROWS)} of 1,230"
    tab.press("Tab")
    assert tab.run("document.activeElement.id") == "runs-by-0"
    outline = tab.run("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_phone_scrolls_down_only(browser: Tab, page: Path) -> None:
    browser.open(page, 390, 844)
    browser.click("#runs .opener button")
    assert browser.run("document.documentElement.scrollWidth") == 390
    assert browser.errors == []
