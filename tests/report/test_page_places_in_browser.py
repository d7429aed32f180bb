"""A long page in Chromium: contents in lines, cues where there is more, pictures, print."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import Tab, needs_browser
from support.images import pixels

from rbve.report.chart import Chart, Panel, Point, Series
from rbve.report.page import Section, write
from rbve.report.render import environment

pytestmark = needs_browser

CHART = Chart(
    "chart",
    "A chart",
    "n = 2.",
    "lines",
    "x",
    "y",
    tuple(Panel(str(k), (Series("one", "#d62410", (Point(1, k), Point(2, 3))),)) for k in range(3)),
)
table = environment().get_template("parts.jinja").module.table  # type: ignore[attr-defined]
WIDE = str(
    table("wide", [f"column {k}" for k in range(30)], [[f"cell {k} of it" for k in range(30)]])
)
FOLDED = "<details><summary>Folded</summary><p id='inside'>inside</p></details>"
CLAIM = (
    '<div class="scroll"><table class="claims"><thead><tr><th>verdict</th><th>claim</th></tr>'
    '</thead><tbody><tr><td class="verdict">partly</td><th scope="row">Words</th>'
    f"{''.join(f'<td data-label={k}>measured {k} of it</td>' for k in range(12))}"
    "</tr></tbody></table></div>"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sections = [
        Section(f"s{k}", f"A section with the number {k}", "<p>words</p>" * 30) for k in range(20)
    ]
    body = WIDE + CLAIM + FOLDED
    sections.insert(10, Section("figures", "Figures", body, (CHART,)))
    folder = tmp_path_factory.mktemp("long")
    return write(sections, folder / "page.html", "Title", "about")


@pytest.fixture
def tab(browser: Tab, page: Path) -> Iterator[Tab]:
    browser.open(page, 1280, 900)
    yield browser
    browser.send("Emulation.setEmulatedMedia", media="")
    assert browser.errors == []


def boxes(tab: Tab, selector: str) -> list[list[float]]:
    """Left, top, right, bottom of each."""
    return tab.run(
        f"[...document.querySelectorAll({selector!r})].map(e => e.getBoundingClientRect())"
        ".map(b => [b.left, b.top, b.right, b.bottom])"
    )


def test_contents_are_all_in_sight(tab: Tab) -> None:
    links = boxes(tab, "nav.contents a")
    assert len(links) == 21
    assert all(left >= 0 and right <= 1280 for left, _, right, _ in links)
    assert len({top for _, top, _, _ in links}) > 1
    # A heading that is jumped to stands below them.
    tab.run("document.documentElement.style.scrollBehavior = 'auto'")
    tab.click("nav.contents a[href='#s15']")
    tab.run("new Promise(done => setTimeout(done, 200))")
    (_, top, _, _), (_, _, _, bottom) = *boxes(tab, "#s15"), *boxes(tab, "nav.contents")
    assert bottom <= top < bottom + 100
    assert tab.texts("nav.contents [aria-current]") == ["A section with the number 15"]


def test_on_a_phone_contents_scroll(browser: Tab, page: Path) -> None:
    browser.open(page, 390, 844)
    assert len({top for _, top, _, _ in boxes(browser, "nav.contents a")}) == 1
    assert browser.run("document.documentElement.scrollWidth") == 390


def edge(tab: Tab, side: str) -> int:
    """How much darker the page is at an edge of the wide table than in its middle."""
    found = tab.run(
        "(() => { const box = document.querySelector('.scroll').getBoundingClientRect();"
        "return [box.left, box.right, box.bottom + scrollY]; })()"
    )
    x = found[0] + 1 if side == "left" else found[1] - 2
    clip = {"x": x, "y": found[2] - 6, "width": 1, "height": 1, "scale": 1}
    data = tab.send("Page.captureScreenshot", clip=clip)["data"]
    return 250 - brightness(base64.b64decode(data))


def brightness(png: bytes) -> int:
    return int(pixels(png)[0, 0, 0])


def test_a_shadow_says_that_there_is_more(tab: Tab) -> None:
    tab.run("document.querySelector('.scroll').scrollIntoView({block: 'end', behavior: 'instant'})")
    assert (edge(tab, "left"), edge(tab, "right") > 15) == (0, True)
    tab.run("document.querySelector('.scroll').scrollLeft = 1e6")
    assert (edge(tab, "left") > 15, edge(tab, "right")) == (True, 0)


@pytest.mark.parametrize("width", [390, 1280])
def test_words_of_a_figure_can_be_read(browser: Tab, page: Path, width: int) -> None:
    browser.open(page, width, 844)
    assert browser.texts("#chart figcaption > *") == ["A chart", "n = 2."]
    ((left, _, right, _),) = boxes(browser, "#chart figcaption")
    assert 0 <= left < right <= width
    height = browser.run(
        "document.querySelector('#chart figcaption p').getBoundingClientRect().height"
    )
    assert height > 10
    assert browser.texts(".files a") == ["PNG", "SVG", "CSV"]
    ids = browser.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(set(ids)) == len(ids)


def test_files_stand_under_the_drawing(tab: Tab) -> None:
    ((_, _, _, drawing),) = boxes(tab, "#chart .stage")
    ((_, files, _, _),) = boxes(tab, "#chart .files")
    assert files >= drawing


def test_all_of_it_fits_on_paper(tab: Tab) -> None:
    tab.send("Emulation.setDeviceMetricsOverride", width=1032, height=703, deviceScaleFactor=1,
             mobile=False)  # fmt: skip
    tab.send("Emulation.setEmulatedMedia", media="print")
    tab.run("dispatchEvent(new Event('beforeprint'))")
    for selector in ("td, th", "table.claims td", "figure svg", "#inside"):
        assert max(right for _, _, right, _ in boxes(tab, selector)) <= 1032, selector
    assert tab.run("document.querySelector('#inside').checkVisibility()") is True
    assert tab.run("getComputedStyle(document.querySelector('#chart')).breakInside") == "avoid"
    assert tab.run("document.querySelector('.files').checkVisibility()") is False
    tab.run("dispatchEvent(new Event('afterprint'))")
    assert tab.run("document.querySelector('details:has(#inside)').open") is False


def test_charts_are_drawn_for_paper_in_its_colours(browser: Tab, page: Path) -> None:
    browser.open(page, 1280, 900, dark=True)
    drawn = "document.querySelector('#chart .stage').dataset.drawn"
    line = "getComputedStyle(document.querySelector('#chart .mark-line path')).stroke"
    assert browser.run(drawn) is None  # too far below to be drawn yet
    later = "new Promise(done => setTimeout(done, 400))"
    browser.run(f"dispatchEvent(new Event('beforeprint')) && {later}")
    assert browser.run(drawn) == "yes"
    assert len(boxes(browser, "#chart .view svg")) == 3
    assert browser.run(line) != "rgb(214, 36, 16)"
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    browser.send("Emulation.setEmulatedMedia", media="print", features=[dark])
    assert browser.run(line) == "rgb(214, 36, 16)"
    browser.send("Emulation.setEmulatedMedia", media="", features=[dark])
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run(line) != "rgb(214, 36, 16)"
    assert browser.errors == []


def test_paper_lies_on_its_side(tab: Tab) -> None:
    data = tab.send("Page.printToPDF", preferCSSPageSize=True)["data"]
    found = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", base64.b64decode(data))
    assert found is not None
    width, height = map(float, found.groups())
    assert width > height
