"""Charts as Chromium draws them: shapes, hover, legend, keys, dark, on a phone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browser import Tab, needs_browser

from rbve.report.chart import Chart, Mark, Panel, Point, Series
from rbve.report.chart_scale import Axis
from rbve.report.page import Section, web, write

pytestmark = needs_browser

RED, BLACK = "#d62410", "#222222"


def line(name: str, colour: str, ys: list[float], **options: Any) -> Series:
    points = (Point(1000 * (k + 1), y, y - 1, y + 2, 5) for k, y in enumerate(ys))
    return Series(name, colour, tuple(points), **options)


CURVES = Chart(
    "curves",
    "Curves <b>",
    "Mean of n = 5.",
    "lines",
    "updates",
    "return",
    (
        Panel(
            "catch",
            (
                line("R-BVE", RED, [1.5, 20, 3], strong=True),
                line("filtered BC", BLACK, [5, math.nan, 7, 8], members=((1000, 6.0),)),
            ),
            (Mark(4.0, "random"),),
        ),
        Panel("cartpole", (line("R-BVE", RED, [100, 200]),)),
    ),
)
ROWS = Chart(
    "rows",
    "Rows",
    "Median of n = 2.",
    "rows",
    "",
    "error",
    (
        Panel(
            "",
            (
                Series("BVE", "#e69f00", (Point("BVE", 0.0, n=2),), (("BVE", 0.0), ("BVE", 0.1))),
                Series("DDQN", "#0072b2", (Point("DDQN", 12345.6, 1e2, 1e6, 2, "one diverged"),)),
            ),
            (Mark(10.0, "reference"),),
        ),
    ),
    "category",
    "symlog",
)
DOTS = "#{} .series[data-name='{}'] .dot"
BARE = Section("more", "More", "<p>words</p>" * 30)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    sections = [Section("charts", "Charts", "<p>Body.</p>", (CURVES, ROWS)), BARE]
    return write(sections, folder / "page.html", "Title", "about")


@pytest.fixture
def tab(browser: Tab, page: Path) -> Iterator[Tab]:
    browser.open(page)
    yield browser
    assert browser.errors == []
    # From disk, and nothing else is asked for.
    assert browser.requests == [page.as_uri()]


def count(tab: Tab, selector: str) -> int:
    return len(tab.texts(selector))


def tip(tab: Tab, chart: str) -> list[str]:
    assert tab.run(f"document.querySelector('#{chart} .tip').hidden") is False
    return tab.texts(f"#{chart} .tip > *")


def test_charts_are_drawn(tab: Tab) -> None:
    assert count(tab, "#curves .panel") == 2
    # One line in three pieces' worth of points: a value that is not finite breaks it in two.
    assert count(tab, "#curves .series[data-name='R-BVE'] .line") == 2
    assert count(tab, "#curves .series[data-name='filtered BC'] .line") == 2
    assert count(tab, DOTS.format("curves", "R-BVE")) == 5
    assert count(tab, DOTS.format("curves", "filtered BC")) == 3
    assert count(tab, "#curves .member") == 1
    assert count(tab, "#rows .dot") - count(tab, "#rows .legend .dot") == 2
    assert count(tab, "#rows .panel .bar") == 1
    assert count(tab, "#rows .member") == 2
    assert {"catch", "cartpole", "updates", "return", "random"} <= set(tab.texts("#curves text"))
    assert {"BVE", "DDQN", "error", "0", "reference"} <= set(tab.texts("#rows .drawing text"))
    label = tab.run("document.querySelector('#curves .drawing svg').getAttribute('aria-label')")
    assert label == "Curves <b>. Mean of n = 5. Left out, since not finite: filtered BC 1."


def test_places_follow_the_values(tab: Tab) -> None:
    place = "[...document.querySelectorAll({!r})].map(e => [e.cx, e.cy].map(c => c.baseVal.value))"
    spots = tab.run(place.format(DOTS.format("curves", "R-BVE").replace("'", '"')))
    (x0, y0), (x1, y1), (x2, y2) = spots[:3]
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.3)
    assert (y0 - y1) / (y0 - y2) == pytest.approx(18.5 / 1.5, rel=0.1)
    zero, far = tab.run(place.format("#rows .panel .dot"))
    assert zero[0] < 20 < far[0]


def test_hover_tells_the_numbers(tab: Tab) -> None:
    tab.hover(DOTS.format("curves", "R-BVE"), 1)
    assert tip(tab, "curves") == [
        "R-BVE", "catch", "updates: 2,000", "return: 20 [19, 22]", "n = 5",
    ]  # fmt: skip
    tab.hover(DOTS.format("curves", "R-BVE"), 4)
    assert tip(tab, "curves")[:4] == [
        "R-BVE", "cartpole", "updates: 2,000", "return: 200 [199, 202]",
    ]  # fmt: skip
    tab.hover("#rows .panel .series[data-name='DDQN'] .dot")
    assert tip(tab, "rows") == ["DDQN", "error: 12,346 [100, 1,000,000]", "n = 2", "one diverged"]
    tab.hover("h1")
    assert tab.run("document.querySelector('#rows .tip').hidden") is True


def pressed(tab: Tab) -> list[str]:
    script = "[...document.querySelectorAll('#curves .legend [aria-pressed]')]"
    return tab.run(f"{script}.map(b => b.getAttribute('aria-pressed'))")


def test_legend_switches_a_series_in_all_panels(tab: Tab) -> None:
    assert tab.texts("#curves .legend [aria-pressed]") == ["R-BVE", "filtered BC"]
    tab.click("#curves .legend button")
    assert pressed(tab) == ["false", "true"]
    assert count(tab, "#curves .panel .series[data-name='R-BVE']") == 0
    assert count(tab, DOTS.format("curves", "filtered BC")) == 3
    # The axis fits what is left: values from 4 to 10.
    assert "20" not in tab.texts("#curves .tick")
    tab.click("#curves .legend .all")
    assert pressed(tab) == ["true", "true"]
    assert count(tab, DOTS.format("curves", "R-BVE")) == 5


@pytest.mark.parametrize("way", ["double", "alt", "key"])
def test_only_one_series(tab: Tab, way: str) -> None:
    button = "#curves .legend button:nth-child(2)"
    if way == "key":
        tab.run(f"document.querySelector('{button}').focus()")
        tab.press("o")
    else:
        tab.click(button, times=2 if way == "double" else 1, alt=way == "alt")
    assert pressed(tab) == ["false", "true"]
    if way == "key":
        tab.press("o")
        assert pressed(tab) == ["true", "true"]


def test_arrow_keys_reach_every_point(tab: Tab) -> None:
    def spoken() -> str:
        return tab.texts("#curves [aria-live]")[0]

    tab.run("document.querySelector('#curves .drawing').focus()")
    tab.press("ArrowRight")
    assert spoken() == "R-BVE, catch, updates: 1,000, return: 1.5 [0.5, 3.5], n = 5"
    seen = []
    for _ in range(4):  # on into the next panel
        tab.press("ArrowRight")
        seen.append(spoken().split(", n")[0].split("return: ")[1])
    assert seen == ["20 [19, 22]", "3 [2, 5]", "100 [99, 102]", "200 [199, 202]"]
    tab.press("ArrowRight")  # the end
    assert "200 [199" in spoken()
    for _ in range(3):
        tab.press("ArrowLeft")
    tab.press("ArrowDown")  # the other line; it has no point at 2,000
    assert spoken().startswith("filtered BC, catch, updates: ")
    tab.press("ArrowUp")
    assert spoken().startswith("R-BVE, catch")
    assert tip(tab, "curves")[0] == "R-BVE"
    tab.press("Escape")
    assert tab.run("document.querySelector('#curves .tip').hidden") is True


def test_arrow_keys_in_rows(tab: Tab) -> None:
    tab.run("document.querySelector('#rows .drawing').focus()")
    told = []
    for _ in range(2):
        tab.press("ArrowDown")
        told.append(tab.texts("#rows [aria-live]")[0])
    assert told == [
        "BVE, error: 0, n = 2",
        "DDQN, error: 12,346 [100, 1,000,000], n = 2, one diverged",
    ]


def test_numbers_are_made_when_opened(tab: Tab) -> None:
    assert count(tab, "#curves .numbers td") == 0
    tab.click("#curves .numbers summary")
    tab.run("new Promise(done => setTimeout(done, 100))")
    lines = tab.run(
        "[...document.querySelectorAll('#curves .numbers tr')]"
        ".map(r => [...r.cells].map(c => c.textContent).join('|'))"
    )
    assert lines[0] == "panel|series|updates|return|low|high|n|note"
    assert lines[2] == "catch|R-BVE|2,000|20|19|22|5|"
    assert lines[5] == "catch|filtered BC|2,000|–|–|–|5|"
    assert len(lines) == 1 + 9


@pytest.mark.parametrize(("dark", "colours"), [(False, (RED, BLACK)), (True, ("lighter", "white"))])
def test_dark_pages_have_light_lines(
    browser: Tab, page: Path, dark: bool, colours: tuple[str, str]
) -> None:
    browser.open(page, dark=dark)
    seen = []
    for name in ("R-BVE", "filtered BC"):
        place = f'#curves .panel .series[data-name="{name}"] .line'
        colour = browser.run(f"getComputedStyle(document.querySelector('{place}')).stroke")
        seen.append([int(part) for part in colour[4:-1].split(",")])
    if dark:
        # White's share of the mixture is equal in all parts; nearly black turns nearly white.
        assert seen[0][0] > 0xD6
        assert (255 - seen[0][1]) / (255 - 0x24) == pytest.approx(
            (255 - seen[0][2]) / (255 - 0x10), abs=0.01
        )
        assert min(seen[1]) > 180
    else:
        assert seen == [[0xD6, 0x24, 0x10], [0x22] * 3]
    assert browser.errors == []


def test_a_phone_scrolls_down_only(browser: Tab, page: Path) -> None:
    browser.open(page, 390, 844)
    wide, held = browser.run("[document.documentElement.scrollWidth, innerWidth]")
    assert wide == held == 390
    # Panels stand below one another.
    places = browser.run(
        "[...document.querySelectorAll('#curves .panel')].map(p => p.getBoundingClientRect().top)"
    )
    assert places[1] - places[0] > 150
    browser.hover(DOTS.format("curves", "R-BVE"), 0)
    assert tip(browser, "curves")[0] == "R-BVE"
    assert browser.run("document.documentElement.scrollWidth") == 390


def test_contents_follow_the_reader(tab: Tab) -> None:
    current = "nav.contents [aria-current]"
    assert tab.texts(current) == ["Charts"]
    tab.run("document.querySelector('#more').scrollIntoView({behavior: 'instant'})")
    tab.run("new Promise(done => setTimeout(done, 100))")
    assert tab.texts(current) == ["More"]


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
def test_places_are_those_of_the_pictures(browser: Tab, scale: str, found: list[float]) -> None:
    """The browser's axis and the one of the files beside the page put values at equal places."""
    known = [value for value in found if scale != "log" or value > 0] or [1.0]
    shares = browser.run(
        f"(() => {{ {web('scale.js')}\nconst axis = new Axis({known}, {scale!r}, 5);"
        f"return [axis.threshold || 0, {known}.map((value) => axis.at(value))]; }})()"
    )
    axis = Axis(known, scale)  # type: ignore[arg-type]
    low, high = axis.at(axis.low), axis.at(axis.high)
    own = [(axis.at(value) - low) / (high - low) for value in known]
    if scale == "symlog":
        assert shares[0] == pytest.approx(axis.threshold)
    assert shares[1] == pytest.approx(own, abs=0.12)  # ticks, and so ends, differ a little
    assert own == sorted(own)
