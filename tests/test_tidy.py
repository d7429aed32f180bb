"""Rows as data frames."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import rbve
from rbve import rows
from rbve.rows import Row, Run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, (algorithm, hidden) in enumerate((("bve", [8]), ("rbve", [8, 8]))):
        spec = {
            "algorithm": algorithm, "seed": number, "group": "catch", "replicate": "0", "steps": 9,
            "network": {"hidden": hidden}, "settings": {"lam": 0.1} if number else {},
        }  # fmt: skip
        own = [Row(5, "return", 0.5 + number, 10), Row(9, "return", 1.5, 10), Row(9, "loss", 2, 4)]
        (tmp_path / algorithm).mkdir()
        run = Run(f"{algorithm}-{number}", spec, {}, own)
        rows.write(run, tmp_path / algorithm / rows.FILE)
    return tmp_path


def test_every_row_is_a_line_with_what_its_run_was(folder: Path) -> None:
    frame = rbve.results(folder)
    assert list(frame.columns) == [
        "job", "algorithm", "group", "replicate", "seed", "hidden", "lam",
        "step", "metric", "value", "n",
    ]  # fmt: skip
    assert len(frame) == 6
    last = frame.query("metric == 'return' and step == 9").set_index("algorithm")
    assert last["value"].to_dict() == {"bve": 1.5, "rbve": 1.5}
    assert last["hidden"].to_dict() == {"bve": "[8]", "rbve": "[8, 8]"}
    assert last["lam"].isna().to_dict() == {"bve": True, "rbve": False}
    assert frame.groupby("job", observed=True)["n"].sum().to_dict() == {"bve-0": 24, "rbve-1": 24}


def test_metrics_are_chosen(folder: Path) -> None:
    assert set(rbve.results(folder, metrics=["loss"])["metric"]) == {"loss"}
    with pytest.raises(ValueError, match="no row of returns; there are loss, return"):
        rbve.results(folder, metrics=["returns"])
    with pytest.raises(ValueError, match=r"no rows\.jsonl below"):
        rbve.results(folder / "bve", (folder / "none").mkdir() or folder / "none")
    (folder / "begun").mkdir()
    rows.write(Run("begun", {}, {}, []), folder / "begun" / rows.FILE)
    with pytest.raises(ValueError, match="no rows yet"):
        rbve.results(folder / "begun")
    with pytest.raises(ValueError, match="pass the folders of runs"):
        rbve.results()


def test_frames_are_of_the_library_that_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    polars = pytest.importorskip("polars")
    frame = rbve.results(folder, library="polars")
    assert isinstance(frame, polars.DataFrame)
    assert frame.filter(polars.col("metric") == "loss")["value"].to_list() == [2, 2]
    table = rbve.results(folder, library="arrow")
    assert table.num_rows == 6
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="pandas or polars; install one"):
        rbve.results(folder, library="polars")
