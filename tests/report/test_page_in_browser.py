"""Charts as Chromium draws them: shapes, hover, legend, keys, dark, on a phone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browser import Tab, needs_browser

from rbve.report.chart import Chart, Mark, Panel, Point, Series
from rbve.report.page import Section, write

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
POINTS = "#{} .mark-symbol[class*=points] path"  # those told of; each holds its row
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


def items(tab: Tab, chart: str, series: str = "", kind: str = "[class*=points]") -> list[Any]:
    """Panel, x, y on the page and opacity of the drawn symbols."""
    return tab.run(
        f"[...document.querySelectorAll('#{chart} .mark-symbol.role-mark{kind} path')]"
        f".filter(e => {series!r} === '' || e.__data__.datum.series === {series!r})"
        ".map(e => { const b = e.getBoundingClientRect(); return [e.__data__.datum.panel,"
        " b.x + b.width / 2, b.y + b.height / 2, e.__data__.opacity]; })"
    )


def pieces(tab: Tab, chart: str, series: str) -> list[int]:
    """Unbroken pieces of each line of a series."""
    return tab.run(
        f"[...document.querySelectorAll('#{chart} .mark-line path')]"
        f".filter(e => e.__data__.datum.series === {series!r})"
        ".map(e => e.getAttribute('d').split('M').length - 1)"
    )


def test_charts_are_drawn(tab: Tab) -> None:
    assert count(tab, "#curves .view > svg, #curves .view > * > svg") == 2
    # A value that is not finite breaks a line in two.
    assert pieces(tab, "curves", "R-BVE") == [1, 1]
    assert pieces(tab, "curves", "filtered BC") == [2]
    assert len(items(tab, "curves", "R-BVE")) == 5
    assert len(items(tab, "curves", "filtered BC")) == 3
    single = ":not([class*=points])"
    assert len(items(tab, "curves", kind=single)) == 1
    assert len(items(tab, "rows")) == 2
    assert count(tab, "#rows .mark-rule.role-mark line[stroke*='#0072b2']") == 1  # an interval
    assert len(items(tab, "rows", kind=single)) == 2
    assert {"catch", "cartpole", "updates", "return", "random"} <= set(tab.texts("#curves text"))
    assert {"BVE", "DDQN", "error", "0", "reference"} <= set(tab.texts("#rows .stage text"))
    label = tab.run("document.querySelector('#curves .stage').getAttribute('aria-label')")
    assert label.startswith("Curves <b>. Mean of n = 5. Left out, since not finite: filtered BC 1.")
    assert "Arrow keys" in label


def test_places_follow_the_values(tab: Tab) -> None:
    spots = [(x, y) for _, x, y, _ in items(tab, "curves", "R-BVE")]
    (x0, y0), (x1, y1), (x2, y2) = spots[:3]
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.3)
    assert (y0 - y1) / (y0 - y2) == pytest.approx(18.5 / 1.5, rel=0.1)
    left = tab.run("document.querySelector('#rows .stage').getBoundingClientRect().left")
    (_, zero, _, _), (_, far, _, _) = items(tab, "rows")
    assert zero - left < 90 < far - left - 100


def test_hover_tells_the_numbers(tab: Tab) -> None:
    tab.hover(POINTS.format("curves"), 1)
    assert tip(tab, "curves") == [
        "R-BVE", "catch", "updates: 2,000", "return: 20 [19, 22]", "n = 5",
    ]  # fmt: skip
    tab.hover(POINTS.format("curves"), 7)
    assert tip(tab, "curves")[:4] == [
        "R-BVE", "cartpole", "updates: 2,000", "return: 200 [199, 202]",
    ]  # fmt: skip
    tab.hover(POINTS.format("rows"), 1)
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
    assert items(tab, "curves", "R-BVE") == []
    assert len(items(tab, "curves", "filtered BC")) == 3
    # The axis fits what is left: values from 4 to 10.
    assert "20" not in tab.texts("#curves .view:first-child .role-axis-label text")
    tab.click("#curves .legend .all")
    assert pressed(tab) == ["true", "true"]
    assert len(items(tab, "curves", "R-BVE")) == 5


def test_a_row_goes_with_its_series(tab: Tab) -> None:
    tab.click("#rows .rows summary")
    tab.click("#rows .legend button")
    tab.run("new Promise(done => setTimeout(done, 200))")
    assert len(items(tab, "rows")) == 1
    assert "BVE" not in tab.texts("#rows .stage text")
    assert "DDQN" in tab.texts("#rows .stage text")


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

    tab.run("document.querySelector('#curves .stage').focus()")
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
    tab.run("document.querySelector('#rows .stage').focus()")
    told = []
    for _ in range(2):
        tab.press("ArrowDown")
        told.append(tab.texts("#rows [aria-live]")[0])
    assert told == [
        "BVE, error: 0, n = 2",
        "DDQN, error: 12,346 [100, 1,000,000], n = 2, one diverged",
    ]


def test_numbers_stand_in_the_page(tab: Tab) -> None:
    assert tab.run("document.querySelector('#curves .numbers table').checkVisibility()") is False
    tab.click("#curves .numbers summary")
    tab.run("new Promise(done => setTimeout(done, 100))")
    assert tab.run("document.querySelector('#curves .numbers table').checkVisibility()") is True
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
        colour = browser.run(
            "getComputedStyle([...document.querySelectorAll('#curves .mark-line path')]"
            f".find(e => e.__data__.datum.series === {name!r})).stroke"
        )
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
        "[...document.querySelectorAll('#curves .view')].map(p => p.getBoundingClientRect().top)"
    )
    assert places[1] - places[0] > 150
    browser.hover(POINTS.format("curves"), 0)
    assert tip(browser, "curves")[0] == "R-BVE"
    assert browser.run("document.documentElement.scrollWidth") == 390


def test_contents_follow_the_reader(tab: Tab) -> None:
    current = "nav.contents [aria-current]"
    assert tab.texts(current) == ["Charts"]
    tab.run("document.querySelector('#more').scrollIntoView({behavior: 'instant'})")
    tab.run("new Promise(done => setTimeout(done, 100))")
    assert tab.texts(current) == ["More"]


def test_a_page_that_turns_dark_changes_its_colours(tab: Tab) -> None:
    lines = "[...document.querySelectorAll('#curves .mark-line path')]"
    strokes = f"{lines}.map(e => getComputedStyle(e).stroke)"
    light = tab.run(strokes)
    assert "rgb(214, 36, 16)" in light
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    tab.send("Emulation.setEmulatedMedia", features=[dark])
    assert not set(tab.run(strokes)) & set(light)
    assert len(items(tab, "curves", "R-BVE")) == 5


def test_figures_far_below_wait(browser: Tab, tmp_path: Path) -> None:
    """A study has dozens: each is drawn when it comes near, and all of them for paper."""
    sections = [
        Section("top", "Top", "<p>words</p>" * 200),
        Section("charts", "Charts", "", (CURVES, ROWS)),
    ]
    browser.open(write(sections, tmp_path / "page.html", "Title", "about"))
    drawn = "document.querySelectorAll('.stage[data-drawn]').length"
    assert browser.run(drawn) == 0
    assert browser.run("document.querySelector('#curves .stage').offsetHeight") > 150
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.run("new Promise(done => setTimeout(done, 400))")
    assert browser.run(drawn) == 2
    assert browser.errors == []
