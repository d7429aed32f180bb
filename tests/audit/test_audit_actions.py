"""Charts of actions: true shares of many, labels that differ, illegal told from never taken."""

from __future__ import annotations

import numpy as np
import pytest
from support.scene import scene

from rbve.audit import Audit, audit
from rbve.data import Dataset, Episode
from rbve.report import audit_figures as figures
from rbve.report.audit_page import document
from rbve.report.figure import Figure

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


def drawn(found: Audit, name: str) -> Figure:
    return next(each for each in figures.figures(found) if each.name == name)


def test_shares_are_of_all_decisions_and_the_rest_is_told(many: Audit) -> None:
    figure = drawn(many, "actions")
    shares = [100 * row["share"] for row in figure.rows]
    assert len(shares) == 24
    assert sum(shares) == pytest.approx(100)
    assert shares[0] == pytest.approx(10, abs=1)  # the most frequent comes first, declared last
    assert shares[1:23] == sorted(shares[1:23], reverse=True)
    assert max(shares[1:23]) < 2
    assert shares[23] == pytest.approx(60, abs=5)
    assert figure.note == "the 23 most frequent of 80; shares of all decisions"
    (view,), texts = scene(figure)
    assert f"{shares[0]:.1f}%" in texts
    wide = [each["width"] for each in view.marks("rect", figures.BAR, points=True)]
    assert np.array(wide) / wide[0] == pytest.approx(np.array(shares) / shares[0])
    for name in ("actions", "regions"):
        ((view,), _) = scene(drawn(many, name))
        assert view.axes["y"][-1][1] == "57 other actions"


def test_labels_differ_and_names_stand_in_full_beside(many: Audit) -> None:
    for name in ("actions", "regions"):
        figure = drawn(many, name)
        ((view,), _) = scene(figure)
        labels = [text for _, text in view.axes["y"]]
        assert len(set(labels)) == len(labels) == 24
        # The pointer and the numbers tell the full name.
        assert "action" in figure.columns
        assert any(row["action"] == "antibiotic, broad spectrum, dose 79" for row in figure.rows)
    page = document(many, "many")
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


TAKEN, LEGAL, UNDER, NEVER = "taken", "legal, under 5 rows", "under 5 rows", "never legal there"


def test_illegal_looks_unlike_never_taken() -> None:
    rows = figures.action_rows(["a", "b", "c"], [9, 0, 0])
    figure = figures.regions(rows, [[9, 0, 0]], [[9, 9, 0]])
    assert [row["series"] for row in figure.rows] == [TAKEN, LEGAL, NEVER]
    (view,), _ = scene(figure)
    looks = [each.get("fill") for each in view.marks("rect", points=True)]
    assert len(set(looks)) == 3
    plain = figures.regions(rows, [[9, 0, 0]], None)
    assert [row["series"] for row in plain.rows] == [TAKEN, UNDER, UNDER]


def test_regions_are_as_wide_as_their_visits() -> None:
    rows = figures.action_rows(["a", "b"], [40, 20])
    (view,), _ = scene(figures.regions(rows, [[30, 10], [10, 10]], None))
    cells = view.marks("rect", points=True)
    wide = cells[0]["width"]
    assert [each["width"] for each in cells] == pytest.approx([wide, wide, wide / 2, wide / 2])
    # The stronger, the more often it was taken there.
    assert [round(each["fillOpacity"], 2) for each in cells] == [1, 0.39, 0.69, 0.69]


def test_the_legend_says_which_is_which(masked_log: Dataset, walk_log: Dataset) -> None:
    masked = drawn(audit(masked_log), "regions")
    assert [entry.name for entry in masked.legend] == [TAKEN, LEGAL, NEVER]
    assert any(row["series"] == NEVER for row in masked.rows)
    assert {TAKEN, LEGAL, NEVER} <= set(scene(masked)[1])
    plain = drawn(audit(walk_log), "regions")
    assert [entry.name for entry in plain.legend] == [TAKEN, UNDER]
    assert "legal" not in plain.words
