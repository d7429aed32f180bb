"""A log of one-step rows with many actions and rare clicks, from CSV to a decision, without special
cases; and it is told how little such a log can say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.cli import run

ROWS, ITEMS, CLICKS = 500, 80, 4
FEW = ["--fit-steps", "20"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store converted from CSV."""
    folder = tmp_path_factory.mktemp("clicks")
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(ROWS, 3))
    chance = np.exp(seen @ rng.normal(0, 0.5, (3, ITEMS)))
    chance /= chance.sum(axis=1, keepdims=True)
    item = [rng.choice(ITEMS, p=row) for row in chance]
    clicked = np.isin(np.arange(ROWS), rng.choice(ROWS, CLICKS, replace=False))
    lines = ["user,age,hour,visits,item,propensity,click"]
    for row in range(ROWS):
        numbers = ",".join(f"{value:.4f}" for value in seen[row])
        share = chance[row, item[row]]
        lines.append(f"{row},{numbers},item{item[row]},{share:.6g},{int(clicked[row])}")
    (folder / "clicks.csv").write_text("\n".join(lines) + "\n")
    roles = ["--episode", "user", "--action", "item", "--reward", "click"]
    converted = run("convert", folder / "clicks.csv", folder / "clicks", *roles)
    assert converted.code == 0, converted.err
    assert f"{ROWS} episodes, {ROWS} decisions" in converted.out
    return folder / "clicks"


def test_it_is_inspected(store: Path) -> None:
    found = run("inspect", store)
    assert found.code == 3
    assert "look at this: actions without support" in found.out
    assert "4 of 500 episodes return more than the mean, fewer than the 80 actions" in found.out
    assert "Propensities" in found.out
    assert "mean 0.008" in found.out  # of returns


def test_a_policy_of_it_is_trained_and_refused(store: Path, tmp_path: Path) -> None:
    trained = run("train", store, "--steps", "20", "--out", tmp_path / "run")
    assert trained.code == 0, trained.err
    policy = next((tmp_path / "run").glob("*/policy.safetensors"))
    page = tmp_path / "page.html"
    found = run("ope", policy, store, *FEW, "--html", page, "--json")
    assert found.code == 3  # every estimate was refused
    said = json.loads(found.out)
    assert any("rests on these few" in note for note in said["notes"])
    own = said["policies"]["rbve"]
    assert own["estimate"] is None
    assert {"IPW", "SNIPW", "DM", "DR", "SNDR", "Switch-DR", "DRos"} == set(own["estimates"])
    for each in own["estimates"].values():
        assert not each["passed"]
        assert "events" in each["failed"]
    assert "episodes that return anything but 0" in page.read_text()


def test_a_selection_says_what_to_collect(store: Path, tmp_path: Path) -> None:
    asked = ["--steps", "20", "--checkpoints", "1", *FEW, "--out", tmp_path / "select"]
    found = run("select", store, "--algorithm", "bc", "rbve", *asked)
    assert found.code == 4, found.err
    assert "Collect this first" in found.out
    assert "2 of 2 candidates fail on events" in found.out
    card = (tmp_path / "select" / "card.html").read_text()
    assert "Collect this first" in card
    assert "rests on these few" in card
    assert not (tmp_path / "select" / "policy.safetensors").exists()
