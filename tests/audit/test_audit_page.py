"""The page and the terminal say the same: verdict, findings, remedies, figures."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from support.scene import scene

from rbve.audit import Audit, audit
from rbve.audit.measure import Histogram
from rbve.cli._audit import show, spark
from rbve.data import Dataset
from rbve.data.source import Fault
from rbve.report import audit_figures as figures
from rbve.report.audit_page import document, write

TITLE = 'logs/<b>"x" & [red]'
VOID = {"meta", "rect", "line", "polyline"}


@pytest.fixture(scope="module")
def fine(walk_log: Dataset) -> Audit:
    return audit(walk_log)


@pytest.fixture(scope="module")
def bad(walk_log: Dataset) -> Audit:
    obs = walk_log.obs.copy()
    obs[3, 0] = np.nan
    names = ("hold", "buy <i>now</i>", "sell")
    faults = [Fault("split episode", "a.csv: row 3: episode <7> goes on")]
    return audit(replace(walk_log, obs=obs, actions=names), faults=faults, notes=["a & b"])


class Tree(HTMLParser):
    """Checks that elements close in order; keeps what a reader without eyes gets."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.images: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        self.seen.append(tag)
        if held.get("aria-roledescription") == "chart":
            self.images.append(held["aria-label"] or "")
        if held.get("id"):
            self.ids.append(held["id"] or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read(page: str) -> Tree:
    tree = Tree()
    tree.feed(page)
    assert tree.open == []
    return tree


def test_a_page_is_whole_and_needs_no_network(fine: Audit, tmp_path: Path) -> None:
    path = write(fine, tmp_path / "new" / "audit.html", TITLE)
    page = path.read_text()
    tree = read(page)
    assert len(tree.ids) == len(set(tree.ids))
    own = re.sub(r'<script id="vega">.*?</script>', "", page, flags=re.DOTALL)
    assert len(own) < 0.3e6 < len(page) < 2e6
    assert set(re.findall(r"https?://[^\"']*", own)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<link|@import|src=", own)
    assert tree.seen.count("h1") == 1
    # Tables have a caption, or are the numbers of a figure and told of by its title.
    tables = re.findall(r"<table[^>]*>(<caption>)?", own.split("<script>")[0])
    figures = tree.seen.count("figure")
    assert tables.count("<caption>") == len(tables) - figures >= 3
    assert len(re.findall('aria-label="Numbers: ', page)) == figures
    assert "logs/&lt;b&gt;&#34;x&#34; &amp; [red]</h1>" in page


def test_charts_carry_words(fine: Audit) -> None:
    images = read(document(fine, TITLE)).images
    assert [words.split(":")[0].split(".")[0] for words in images] == [
        "Returns of episodes",
        "Lengths of episodes",
        "Distribution of V̂",
        "Actions taken",
        "Actions over the state space",
    ]
    counts = fine.support.counts
    for name, count in zip(fine.actions, counts, strict=True):
        assert f"{name} {count:,} ({count / sum(counts):.1%})" in images[3]


def test_the_verdict_comes_first(fine: Audit, bad: Audit) -> None:
    page = document(fine, TITLE)
    assert page.index("<strong>fine</strong>") < page.index("What it holds")
    assert '<h2 id="found">' not in page
    page = document(bad, TITLE)
    order = ["<strong>do not train</strong>", "split episode</h3>", "not finite</h3>", "<figure"]
    assert [page.index(words) for words in order] == sorted(page.index(words) for words in order)
    assert "a.csv: row 3: episode &lt;7&gt; goes on." in page
    assert "What to do: fill the gaps" in page
    assert "buy &lt;i&gt;now&lt;/i&gt;" in page
    assert "<li>a &amp; b</li>" in page
    assert "<i>" not in page


def test_the_weights_table_marks_what_is_recommended(fine: Audit) -> None:
    page = document(fine, TITLE)
    assert page.count("(recommended)") == 1
    rows = re.findall(r'<th scope="row">β = ([\d.]+), (\w+)( \(recommended\))?</th>', page)
    assert len(rows) == 12
    chosen = fine.weights.recommended
    assert chosen is not None
    assert (f"{chosen.beta:g}", "dataset", " (recommended)") in rows


def test_a_log_with_nothing_to_rank_has_a_page(walk_log: Dataset) -> None:
    nothing = np.zeros_like(walk_log.reward)
    flat = replace(walk_log, reward=nothing, episode_return=np.zeros(walk_log.num_episodes))
    page = document(audit(flat), TITLE)
    assert "V̂ does not vary" in page
    assert len(read(page).images) == 4


def test_a_folder_is_no_page(fine: Audit, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder"):
        write(fine, tmp_path, TITLE)


def test_the_terminal(fine: Audit, bad: Audit, capsys: pytest.CaptureFixture[str]) -> None:
    show(fine, TITLE)
    text = capsys.readouterr().out
    assert text.startswith(TITLE)
    assert text.endswith("✓ fine\n")
    assert len(text.splitlines()) < 50
    assert "\x1b[" not in text  # no colours into a pipe
    show(bad, TITLE)
    text = capsys.readouterr().out
    last = text.splitlines()[-1]
    assert last == "✗ do not train: split episode, observations not finite"
    assert "→ fill the gaps" in text
    assert "note: a & b" in text


def test_many_actions_stay_short(walk_log: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    many = replace(walk_log, actions=tuple(f"a{k}" for k in range(40)))
    show(audit(many), "many")
    text = capsys.readouterr().out
    assert "… 22 more" in text
    assert len(text.splitlines()) < 50


def test_a_spark_line_shows_where_there_is_nothing() -> None:
    line = spark(Histogram([0, 1, 2, 3, 4], [8, 0, 1, 4]))
    assert line == "█ ▁▄"
    assert spark(Histogram([0, 1], [5])) == ""


def test_bars_are_as_high_as_their_counts() -> None:
    data = Histogram([-0.5, 0.5, 1.5, 2.5], [4, 0, 2])
    (view,), texts = scene(figures.histogram("n", "Title", data, "steps", 0.6))
    first, none, last = view.marks("rect", figures.BAR, points=True)
    assert first["height"] == pytest.approx(2 * last["height"])
    assert none["height"] == 0
    assert view.value("x", first["x"]) == pytest.approx(-0.5)
    assert view.value("x", last["x"] + last["width"]) == pytest.approx(2.5)
    # Ticks of counts are whole.
    assert [text for _, text in view.axes["x"]] == ["0", "1", "2"]
    assert all("." not in text for _, text in view.axes["y"])
    assert "mean 0.6" in texts
    assert "steps" in texts


def test_curves_reach_the_cap(fine: Audit) -> None:
    (found,) = [each for each in figures.figures(fine) if each.name == "values"]
    (view,), texts = scene(found)
    lines = view.marks("line", "#d62410")
    assert [each["x"] for each in lines] == sorted(each["x"] for each in lines)
    heights = [each["y"] for each in lines]
    assert heights == sorted(heights, reverse=True)
    assert 0 <= min(heights) <= max(heights) <= view.height
    assert {entry.name for entry in found.legend} <= set(texts)
