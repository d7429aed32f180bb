"""The demo in small: every step, and what a second run keeps."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rbve import rows
from rbve.cli import _demo


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_demo, "PROBLEMS", (_demo.DemoProblem("catch", 60, 40),))
    monkeypatch.setattr(_demo, "METHODS", ("rbve", "bc"))
    monkeypatch.setattr(_demo, "SEEDS", (0, 1))
    monkeypatch.setattr(_demo, "EPISODES", 4)


@pytest.mark.usefixtures("small")
def test_every_step_and_a_second_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = _demo.run(tmp_path)
    shown = " ".join(capsys.readouterr().out.split())
    assert "10% of its episodes: 6 episodes, 54 decisions; audit: " in shown
    assert "of episodes: " in shown  # the advice
    assert "over 2 datasets" in shown
    assert "over 2 datasets" in page.read_text()
    (problem,) = {run.spec["data"]["keep"] for run in rows.find([tmp_path / "runs"])}
    assert problem == 0.1
    assert {run.spec["settings"].get("lam") for run in rows.find([tmp_path / "runs"])} == {
        _demo.LAMBDA,
        None,  # of cloning
    }

    def times() -> dict[Path, int]:
        files = [*(tmp_path / "data").rglob("*"), *(tmp_path / "runs").rglob("*")]
        return {file: file.stat().st_mtime_ns for file in files if file.is_file()}

    before = times()
    lost = min((tmp_path / "runs").iterdir())
    content = (lost / rows.FILE).read_bytes()
    shutil.rmtree(lost)
    text = page.read_text()
    _demo.run(tmp_path)
    after = times()
    assert after.keys() == before.keys()
    assert {file for file in before if after[file] != before[file]} == {
        file for file in before if lost in file.parents
    }
    assert (lost / rows.FILE).read_bytes() == content
    assert page.read_text() == text


def test_the_problems_are_those_of_the_studies() -> None:
    """A tenth of the episodes; cartpole as long as the studies train."""
    from rbve.behaviours.record import default_episodes
    from rbve.paper.experiments import SCALES

    assert _demo.KEEP == 0.1
    assert {each.env: each.episodes for each in _demo.PROBLEMS} == {
        "cartpole": default_episodes("cartpole"),
        "catch": default_episodes("catch"),
    }
    assert _demo.PROBLEMS[0].steps == SCALES["desk"].steps
