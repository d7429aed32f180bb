"""Charts of actions: true shares of many, labels that differ, illegal told from never taken."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rbve.audit import Audit, audit
from rbve.data import Dataset, Episode
from rbve.report import audit_figures as figures
from rbve.report.audit_page import document

MANY = tuple(f"antibiotic, broad spectrum, dose {k}" for k in range(80))


@pytest.fixture(scope="module")
def many() -> Audit:
    """10,000 one-step rows; action 79 in a tenth of them, the others alike."""
    rng = np.random.default_rng(0)
    share = np.full(80, 0.9 / 79)
    share[79] = 0.1
    episodes = [
        Episode.from_steps(rng.normal(size=(2, 2)).astype(np.float32), [a], [a % 2], True)
        for a in rng.choice(80, p=share, size=10_000)
    ]
    return audit(Dataset.from_episodes(episodes, MANY))


def chart(page: str, name: str) -> str:
    return page[page.index(f'<figure id="{name}">') :].split("</figure>")[0]


def test_shares_are_of_all_decisions_and_the_rest_is_told(many: Audit) -> None:
    drawn = chart(document(many, "many"), "actions")
    shares = [float(found) for found in re.findall(r">([\d.]+)%</text>", drawn)]
    assert len(shares) == 24
    assert sum(shares) == pytest.approx(100, abs=1)
    assert shares[0] == pytest.approx(10, abs=1)  # the most frequent comes first, declared last
    assert shares[1:23] == sorted(shares[1:23], reverse=True)
    assert max(shares[1:23]) < 2
    assert shares[23] == pytest.approx(60, abs=5)
    assert ">57 other actions</text>" in drawn
    assert "the 23 most frequent of 80; shares of all decisions" in drawn
    assert ">57 other actions</text>" in chart(document(many, "many"), "regions")


def test_labels_differ_and_names_stand_in_full_beside(many: Audit) -> None:
    page = document(many, "many")
    for name in ("actions", "regions"):
        labels = re.findall(r"</title>([^<]+)</text>", chart(page, name))
        assert len(set(labels)) == len(labels) == 23
        assert "<title>antibiotic, broad spectrum, dose 79</title>" in chart(page, name)
    assert "All 80 actions, their names in full" in page
    assert all(f'<th scope="row">{name}</th>' in page for name in MANY)


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (["left", "right"], "left"),
        (["a" * 19, "b" * 19], "a" * 17 + "…"),
        (["raise the dose by 1 mg", "raise the dose by 2 mg"], "raise t…se by 1 mg"),
        (["x" * 30, "x" * 31], "x" * 7 + "…" + "x" * 5 + "… 1"),
    ],
)
def test_labels_are_cut_apart(names: list[str], first: str) -> None:
    found = figures.short_labels(names)
    assert found[0] == first
    assert len(set(found)) == len(found)
    assert max(map(len, found)) <= figures.LONGEST


def test_few_actions_keep_their_order_and_need_no_table(walk_log: Dataset) -> None:
    found = audit(walk_log)
    assert [row.name for row in figures.action_rows(found.actions, [1, 5, 3])] == list(
        found.actions
    )
    assert "names in full" not in document(found, "few")


def kinds(rows: list[figures.Row], legal: list[list[int]] | None) -> list[str]:
    cells = [[9, 0, 0]]
    drawn = figures.regions(rows, cells, legal, 5).svg
    return re.findall(r'<rect class="(heat|none|illegal)"', drawn)[:3]


def test_illegal_looks_unlike_never_taken() -> None:
    rows = figures.action_rows(["a", "b", "c"], [9, 0, 0])
    assert kinds(rows, [[9, 9, 0]]) == ["heat", "none", "illegal"]
    assert kinds(rows, None) == ["heat", "none", "none"]


def test_the_legend_says_which_is_which(masked_log: Dataset, walk_log: Dataset) -> None:
    masked = chart(document(audit(masked_log), "masked"), "regions")
    assert "legal, under 5 rows</text>" in masked
    assert "never legal there</text>" in masked
    assert '<rect class="illegal"' in masked
    plain = chart(document(audit(walk_log), "plain"), "regions")
    assert ">under 5 rows</text>" in plain
    assert "legal" not in plain.split("<defs>")[0]
    assert "never legal" not in plain
