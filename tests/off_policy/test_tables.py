"""Anyone's policy as a file of probabilities."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.cli import run

from rbve.data import load
from rbve.decisions import named_policies
from rbve.off_policy.tables import read_table

ACTIONS = ("left", "stay", "right")
TABLE = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])


def test_all_kinds_hold_the_same_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", TABLE)
    columns = {"row": [7, 8]} | dict(zip(ACTIONS[::-1], TABLE.T[::-1], strict=True))
    pq.write_table(pa.table(columns), tmp_path / "table.parquet")
    (tmp_path / "table.csv").write_text("right,left,stay\n0.5,0.2,0.3\n0,1,0\n")
    for name in ("table.npy", "table.parquet", "table.csv"):
        np.testing.assert_array_equal(read_table(tmp_path / name, ACTIONS), TABLE)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.npy", None, "no such file"),
        ("bad.npy", b"\x93NUMPY nothing", "no array of numbers"),
        ("bad.parquet", b"PAR1", "cannot be read as a table"),
        ("less.csv", b"left,stay\n1,0\n", "no column 'right'; .* 3 actions, and has left, stay"),
        ("text.csv", b"left,stay,right\n1,0,no\n", "column 'right': holds string, not numbers"),
    ],
)
def test_what_is_no_table_is_refused(
    name: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_table(tmp_path / name, ACTIONS)
    assert str(tmp_path / name) in str(caught.value)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="no array of numbers"):
        read_table(tmp_path / "table.npy", ACTIONS)


def test_the_command_judges_a_table(catch_path: Path, tmp_path: Path) -> None:
    """A uniform policy on a uniform log is worth what the log returned."""
    data = load(catch_path)
    np.save(tmp_path / "uniform.npy", np.full((data.num_transitions, 3), 1 / 3))
    found = run("ope", tmp_path / "uniform.npy", catch_path, "--fit-steps", "20", "--json")
    assert found.code in (0, 3), found.err
    said = json.loads(found.out)
    own = said["policies"]["uniform"]["estimates"]["IS"]
    if said["propensities"]["source"] == "logged":
        assert own["difference"] == pytest.approx(0.0, abs=1e-6)
    np.save(tmp_path / "off.npy", np.full((data.num_transitions, 3), 0.5))
    refused = run("ope", tmp_path / "off.npy", catch_path, "--fit-steps", "20")
    assert refused.code == 2
    assert "off: episode 0, decision 0: probabilities sum to 1.5, not 1 (row 0, " in refused.err


def test_tables_of_one_name_are_told_apart(catch_path: Path, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("mine/p.npy", "yours/p.npy", "other.npy", "his/a/p.npy")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, np.full((2, 3), 1 / 3))
    names = list(named_policies(files, catch_path))
    assert names == ["mine/p", "yours/p", "other", "a/p"]
    files.append(tmp_path / "her/a/p.npy")
    files[-1].parent.mkdir(parents=True)
    np.save(files[-1], np.full((2, 3), 1 / 3))
    assert list(named_policies(files, catch_path))[3:] == [str(file) for file in files[3:]]
    with pytest.raises(ValueError, match=r"other\.npy: given twice"):
        named_policies([files[2], tmp_path / "mine" / ".." / "other.npy"], catch_path)
