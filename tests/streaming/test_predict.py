"""`rbve predict`: the rows of a file, their decisions, and the lines of those that are none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from support.cli import run
from support.policies import ACTIONS, random_masks, random_policy, random_rows

import rbve
from rbve.data.formats import csv
from rbve.policy import Policy


@pytest.fixture(scope="module")
def policy() -> Policy:
    return random_policy("bcq", "columns")


@pytest.fixture(scope="module")
def saved(policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("policy") / "policy.safetensors"
    policy.save(path)
    return path


def table(count: int = 50) -> pa.Table:
    """With a column of ids and one of comments, which hold line breaks."""
    rows = random_rows(count)
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    columns["score"] = [None if value != value else value for value in columns["score"]]
    ids = pa.array(range(1000, 1000 + count))
    notes = [f"note {i}\nmore" if i % 7 == 3 else f"note {i}" for i in range(count)]
    return pa.table({"id": ids, **columns, "note": notes})


def check(policy: Policy, source: pa.Table, found: pa.Table, legal: Any = None) -> None:
    rows = source.select(policy.features.names).to_pylist()  # type: ignore[union-attr]
    known = policy.decisions(rows, legal)
    each = np.arange(len(rows))
    assert found["policy_action"].to_pylist() == known.action.tolist()
    np.testing.assert_allclose(found["policy_q"], known.q[each, known.index], rtol=1e-5)
    assert found["policy_probability"].to_pylist() == [1.0] * len(rows)
    np.testing.assert_allclose(found["policy_gap"], known.gap, rtol=1e-3, atol=1e-5)
    assert found["policy_supported"].to_pylist() == known.supported.tolist()
    assert 0 < known.supported.sum() < len(rows)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet"])
def test_as_the_policy_decides(
    name: str, policy: Policy, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv, "BLOCK", 1000)  # several parts
    source, path = table(), tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(source, path, row_group_size=20)
    else:
        arrow_csv.write_csv(source, tmp_path / "rows.csv")
        if name.endswith("gz"):
            path.write_bytes(gzip.compress((tmp_path / "rows.csv").read_bytes()))
    done = run("predict", saved, path, "--out", tmp_path / "out.parquet", "--json")
    assert done.code == 0, done.err
    found = pq.read_table(tmp_path / "out.parquet")
    check(policy, source, found)
    told = json.loads(done.out)
    assert told["rows"] == 50
    assert told["unsupported"] == found["policy_supported"].to_pylist().count(False)
    assert [str(each) for each in found["id"].to_pylist()] == [str(i) for i in range(1000, 1050)]
    assert found["note"].to_pylist() == source["note"].to_pylist()


def test_of_a_shipped_folder_with_every_value(policy: Policy, tmp_path: Path) -> None:
    rbve.export(policy, tmp_path / "shipped", epsilon=0.2)
    pq.write_table(table(), tmp_path / "rows.parquet")
    done = rbve.predict(
        tmp_path / "shipped", tmp_path / "rows.parquet", tmp_path / "out.parquet", keep=["id"],
        values=True, prefix="",
    )  # fmt: skip
    assert done.rows == 50
    found = pq.read_table(tmp_path / "out.parquet")
    names = ["id", "action", "q", "probability", "gap", "supported"]
    assert found.column_names == [*names, *(f"q:{action}" for action in ACTIONS)]
    np.testing.assert_allclose(found["probability"], 0.85)
    with pytest.warns(UserWarning, match="far outside the training data: row 2"):
        q = policy.q_values(table().select(policy.features.names).to_pylist())  # type: ignore
    np.testing.assert_allclose(found["q:treat"], q[:, 1], rtol=1e-5)


def broken(folder: Path) -> Path:
    """Of fifty rows four are none. Notes have line breaks, so that lines are not rows."""
    source = table().to_pydict()
    texts = {name: ["" if v is None else str(v) for v in each] for name, each in source.items()}
    texts["age"][4] = "old"
    texts["ward"][11] = "C"
    texts["clock"][30] = ""
    arrow_csv.write_csv(pa.table(texts), folder / "rows.csv")
    lines = (folder / "rows.csv").read_text().splitlines(keepends=True)
    lines.insert(2, '"1","2"\n')
    (folder / "rows.csv").write_text("".join(lines))
    return folder / "rows.csv"


def test_a_bad_row_is_named_by_its_line(saved: Path, tmp_path: Path) -> None:
    path = broken(tmp_path)
    done = run("predict", saved, path, "--out", tmp_path / "out.parquet")
    assert done.code == 2
    assert f"{path}: line 3: 2 fields" in done.err
    assert "--on-error skip" in done.err
    assert not (tmp_path / "out.parquet").exists()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], *lines[3:]]))
    done = run("predict", saved, path, "--out", tmp_path / "out.parquet")
    assert done.code == 2
    # The header is line 1, and the note of row 3 takes two.
    assert f"{path}: line 7: column 'age' takes a number; got 'old'" in done.err


def test_bad_rows_are_skipped_counted_and_listed(
    policy: Policy, saved: Path, tmp_path: Path
) -> None:
    path = broken(tmp_path)
    out = tmp_path / "out.parquet"
    done = run("predict", saved, path, "--out", out, "--on-error", "skip", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["rows"], told["skipped"]) == (47, 4)
    assert "4 rows were skipped" in done.err
    for line, words in ((3, "2 fields"), (8, "'age'"), (16, "'ward': category 'C'"), (37, "clock")):
        assert any(f"line {line}:" in each and words in each for each in told["listed"]), line
    found = pq.read_table(out)
    left = [i for i in range(50) if i not in (4, 11, 30)]
    assert [int(each) for each in found["id"].to_pylist()] == [1000 + i for i in left]
    check(policy, table().take(left), found)


def test_legal_actions(saved: Path, policy: Policy, tmp_path: Path) -> None:
    source, legal = table(), random_masks(50)
    named = ["|".join(np.array(ACTIONS)[row]) for row in legal]
    spread = {f"may_{name}": legal[:, i] for i, name in enumerate(ACTIONS)}
    forms: dict[str, Any] = {
        "names": ({"may": named}, "may", "rows.csv"),
        "arrays": ({"may": legal.astype(int).tolist()}, "may", "rows.parquet"),
        "columns": (spread, "may_*", "rows.csv"),
    }
    for columns, flag, name in forms.values():
        whole = source
        for key, value in columns.items():
            whole = whole.append_column(key, pa.array(value))
        writer = pq.write_table if name.endswith("parquet") else arrow_csv.write_csv
        writer(whole, tmp_path / name)
        done = rbve.predict(
            saved, tmp_path / name, tmp_path / "out.parquet", legal=flag, overwrite=True
        )
        assert done.rows == 50
        check(policy, source, pq.read_table(tmp_path / "out.parquet"), legal)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("", "line 4: no action is legal"),
        ("wait|treet", "line 4: unknown action 'treet'. Did you mean 'treat'"),
    ],
)
def test_masks_that_are_none(cell: str, message: str, saved: Path, tmp_path: Path) -> None:
    source = table(5).drop_columns(["note"])
    source = source.append_column("may", pa.array(["wait", "wait;treat", cell, "treat", "wait"]))
    arrow_csv.write_csv(source, tmp_path / "rows.csv")
    with pytest.raises(ValueError, match=message):
        rbve.predict(saved, tmp_path / "rows.csv", tmp_path / "out.parquet", legal="may")


def test_what_does_not_fit(saved: Path, policy: Policy, tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    pq.write_table(table(3).drop_columns(["age"]), rows)
    with pytest.raises(ValueError, match="no column 'age'"):
        rbve.predict(saved, rows, out)
    pq.write_table(table(3), rows)
    with pytest.raises(ValueError, match=r"no column 'idd'\. Did you mean 'id'"):
        rbve.predict(saved, rows, out, keep=["idd"])
    with pytest.raises(ValueError, match=r"end the name in \.parquet"):
        rbve.predict(saved, rows, tmp_path / "out.csv")
    clashing = tmp_path / "clashing.parquet"
    pq.write_table(table(3).append_column("action", pa.array([1, 2, 3])), clashing)
    with pytest.raises(ValueError, match="'action' has the name of one that is added"):
        rbve.predict(saved, clashing, out, keep=["id", "action"], prefix="")
    with pytest.raises(ValueError, match="which actions are legal, so these rows have to"):
        rbve.predict(random_policy("rbve", "columns", masked=True), rows, out)
    with pytest.raises(ValueError, match="had no named columns"):
        rbve.predict(random_policy("rbve"), rows, out)
    with pytest.raises(ValueError, match=r"nowhere\.csv: no such file"):
        rbve.predict(saved, tmp_path / "nowhere.csv", out)
    with pytest.raises(ValueError, match="on_error is"):
        rbve.predict(saved, rows, out, on_error="go")
    assert not out.exists()
    assert rbve.predict(saved, rows, out).rows == 3
    with pytest.raises(ValueError, match="already exists"):
        rbve.predict(saved, rows, out)
