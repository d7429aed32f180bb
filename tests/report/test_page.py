"""Sections to a page: whole, self-contained, whatever names hold."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from rbve.report import page
from rbve.report.chart import Chart, Panel, Point, Series
from rbve.report.page import Section, write
from rbve.report.render import SCRIPTS, STYLES, embedded, web

ODD = "</script><!--<script>\u2028 \"quoted\" 'single' <b>bold</b> &"


def chart(name: str, text: str = "text") -> Chart:
    series = Series(text, "#d62410", (Point(1, 2.0, n=3, note=text),))
    return Chart(name, text, text, "lines", text, text, (Panel(text, (series,)),))


class Reader(HTMLParser):
    """Elements that are open at the end, and the content of scripts by type."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.data: dict[str | None, list[str]] = {}
        self.kind: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        self.kind = dict(attributes).get("type") if tag == "script" else None

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.data.setdefault(self.kind, []).append(data)


def test_odd_names_stay_text(tmp_path: Path) -> None:
    sections = [Section("one", ODD, "<p>x</p>", (chart("c", ODD),))]
    text = write(sections, tmp_path / "p.html", ODD, "about").read_text()
    read = Reader(text)
    assert read.open == []
    (data,) = read.data["application/json"]
    content = json.loads(data)
    assert dict(zip(content["fields"], content["rows"][0], strict=True))["series"] == ODD
    assert "\u2028" not in data
    vega, ours = read.data[None]  # and no other script
    assert "window.vegaEmbed=" in vega
    assert "new FigureView" in ours
    assert "<b>bold" not in text


def test_embedded_json_has_no_markup() -> None:
    odd = f"{ODD}\ud800"
    text = embedded({"a": odd, "b": [None, 1.5]})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": odd, "b": [None, 1.5]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded([float("nan")])


def test_the_page_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def note(path: Path, content: bytes) -> None:
        written.append(path.relative_to(tmp_path).as_posix())
        if path.name == "b.svg":
            raise OSError("disk full")

    monkeypatch.setattr(page, "write_atomically", note)
    sections = [Section("s", "S", "", (chart("a"), chart("b")))]
    with pytest.raises(OSError, match="disk full"):
        write(sections, tmp_path / "out", "title", "about", {"more.csv": b""})
    first = [f"out/figures/{name}" for name in ("a.png", "a.svg", "a.csv", "b.png", "b.svg")]
    assert written == first
    written.clear()
    write(sections[:0], tmp_path / "out", "title", "about", {"more.csv": b""})
    assert written == ["out/figures/more.csv", "out/index.html"]


def test_files_beside_the_page(tmp_path: Path) -> None:
    write([Section("s", "S", "", (chart("a"),))], tmp_path, "title", "about")
    found = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert found == ["a.csv", "a.png", "a.svg"]
    lines = (tmp_path / "figures" / "a.csv").read_text().splitlines()
    assert lines == ["chart,panel,series,x,y,low,high,n,note", "a,text,text,1,2.0,,,3,text"]


def test_pages_side_by_side_keep_their_figures(tmp_path: Path) -> None:
    """Each page links to a folder of its own, whatever its name holds."""
    names = ("index.html", "one.html", 'odd "name" #2.html')
    for name in names:
        section = Section("s", "S", "", (chart("a"),), linked={"more.csv": "words"})
        write([section], tmp_path / name, "title", "about", {"more.csv": name.encode()})
    folders = {"index.html": "figures", "one.html": "one-figures"}
    for name in names:
        text = (tmp_path / name).read_text()
        folder = folders.get(name, 'odd "name" #2-figures')
        assert (tmp_path / folder / "more.csv").read_text() == name
        assert (tmp_path / folder / "a.png").is_file()
        links = {unquote(link) for link in re.findall(r'href="([^"#]+)"', text)}
        assert f"{folder}/a.png" in links
        assert f"{folder}/more.csv" in links
        assert all((tmp_path / link).is_file() for link in links)


def test_a_figure_has_words_files_and_links(tmp_path: Path) -> None:
    section = Section("s", "S", "<p>body</p>", (chart("c", "Words & <b>"),), after="<p>end</p>")
    text = write([section], tmp_path, "title", "about").read_text()
    figure = text[text.index('<figure class="chart" id="c">') : text.index("</figure>")]
    assert "<h3>Words &amp; &lt;b&gt;</h3>" in figure
    assert '<p class="muted">Words &amp; &lt;b&gt;</p></figcaption>' in figure
    assert 'aria-label="Words &amp; &lt;b&gt;. Words &amp; &lt;b&gt;"></div>' in figure
    assert text.index("body") < text.index('id="c"') < text.index("<p>end</p>")
    for ending in ("png", "svg", "csv"):
        assert f'<a href="figures/c.{ending}">{ending.upper()}</a>' in figure
        assert (tmp_path / "figures" / f"c.{ending}").is_file()


def test_what_comes_first_comes_first(tmp_path: Path) -> None:
    sections = [Section("a", "A", ""), Section("b", "B", ""), Section("c", "C", "", first=True)]
    text = write(sections, tmp_path / "p.html", "title", "about").read_text()
    assert re.findall(r'<h2 id="(.)">', text) == ["c", "a", "b"]
    assert re.findall(r'<a href="#(.)">', text) == ["c", "a", "b"]


def test_contents_name_the_sections(tmp_path: Path) -> None:
    sections = [Section("a", "First & long", "", short="First"), Section("b", "Second", "<p>2</p>")]
    text = write(sections, tmp_path / "p.html", "title", "about").read_text()
    contents = text[text.index("<nav") : text.index("</nav>")]
    assert re.findall(r'<a href="(.*?)">(.*?)</a>', contents) == [("#a", "First"), ("#b", "Second")]
    assert '<h2 id="a">First &amp; long</h2>' in text
    alone = write(sections[:1], tmp_path / "q.html", "title", "about").read_text()
    assert "<nav" not in alone


def test_without_scripts_one_is_told_where_the_pictures_are(tmp_path: Path) -> None:
    text = write([Section("s", "S", "", (chart("a"),))], tmp_path, "title", "about").read_text()
    told = re.findall(r"<noscript>(.*?)</noscript>", text, flags=re.DOTALL)
    assert "need JavaScript" in told[0]
    assert "figures/ beside this page" in told[0]
    assert '<a href="figures/a.png">PNG</a>' in text


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a", "a"), "two sections or figures of one page are named 'a'"),
        (("a b",), "name 'a b' of a section or figure: use letters"),
        (("../up",), "name '../up'"),
    ],
)
def test_names_are_plain_and_unique(names: tuple[str, ...], message: str, tmp_path: Path) -> None:
    sections = [Section("s", "S", "", tuple(chart(name) for name in names))]
    with pytest.raises(ValueError, match=re.escape(message)):
        write(sections, tmp_path, "title", "about")
    assert list(tmp_path.iterdir()) == []


def test_figures_and_sections_share_no_name(tmp_path: Path) -> None:
    for other in (Section("p", "P", ""), Section("s", "S", "", (chart("p"),))):
        sections = [other, Section("t", "T", "", (chart("p"),))]
        with pytest.raises(ValueError, match="two sections or figures of one page are named 'p'"):
            write(sections, tmp_path, "title", "about")


def test_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "page.html").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        write([], tmp_path / "page.html", "title", "about")


def test_scripts_and_styles_are_package_data() -> None:
    """Every file of the folder is used, small, and asks nothing of the network."""
    folder = Path(page.__file__).parent / "web"
    assert {file.name for file in folder.iterdir()} == {"audit.css", *STYLES, *SCRIPTS}
    for name in ("audit.css", *STYLES, *SCRIPTS):
        text = web(name)
        assert len(text.splitlines()) <= 350
        assert not re.search(r"fetch\(|XMLHttp|@import|url\(|innerHTML|eval\(", text)
        assert "</script" not in text
        assert max(map(len, text.splitlines())) <= 130, name
