"""Data frames go where files go."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rbve
from rbve.data import Dataset

ROLES: dict[str, Any] = {
    "episode": "visit", "time": "day", "action": "treatment", "reward": "outcome",
    "observation": ["age", "blood_pressure", "ward"], "ends": "terminated",
}  # fmt: skip
VISITS = Path(__file__).parents[2] / "examples" / "visits.csv"


def frame(kind: str, rows: int = 400) -> Any:
    if kind == "polars":
        return pytest.importorskip("polars").read_csv(VISITS).head(rows)
    table = pytest.importorskip("pandas").read_csv(VISITS).head(rows)
    if kind == "pandas":
        return table.astype({"ward": "category"})
    return pa.Table.from_pandas(table, preserve_index=False)


def equal(one: Dataset, other: Dataset) -> None:
    assert one.actions == other.actions
    assert one.features == other.features
    for name in ("obs", "action", "reward", "offsets", "terminated"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_frame_converts_as_its_file(kind: str, tmp_path: Path) -> None:
    lines = VISITS.read_text().splitlines(keepends=True)[:401]
    (tmp_path / "visits.csv").write_text("".join(lines))
    file = rbve.convert(tmp_path / "visits.csv", tmp_path / "file", **ROLES)
    equal(rbve.convert(frame(kind), tmp_path / kind, **ROLES), file)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_train_inspect_and_decide(kind: str) -> None:
    data = frame(kind)
    assert rbve.inspect(data, **ROLES).counts.episodes > 50
    plan: dict[str, Any] = {"steps": 40, "spec": {"hidden": (8,), "batch_size": 16}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        policy = rbve.train(data, "bve", columns=ROLES, **plan)
    rows = [dict(zip(data.columns, row, strict=True)) for row in np.asarray(data.head(30)).tolist()]
    assert policy.decide(data.head(30)) == policy.decide(rows)
    assert policy.decisions(data.head(30)).supported.all()
    np.testing.assert_array_equal(policy.scores(data.head(3)), policy.scores(rows[:3]))


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    data = frame("pandas")
    with pytest.raises(ValueError, match=r"data frame: .*'visits'"):
        rbve.convert(data, tmp_path / "a", **{**ROLES, "episode": "visits"})
    with pytest.raises(ValueError, match="unknown option 'episodes'"):
        rbve.convert(data, tmp_path / "a", episodes="visit")
    with pytest.raises(ValueError, match="data frame: row 7"):
        rbve.convert(
            data.assign(outcome=data.outcome.where(data.index != 7)), tmp_path / "a", **ROLES
        )
    mixed = pandas.DataFrame({"action": [1, "a", {}], "reward": [1, 2, 3]})
    with pytest.raises(ValueError, match="a column that Arrow cannot take"):
        rbve.inspect(mixed)
    with pytest.raises(ValueError, match="columns= is of data frames"):
        rbve.train(tmp_path, columns={"episode": "visit"})


def test_rows_that_a_policy_cannot_take() -> None:
    from support.policies import random_policy, random_rows

    pandas = pytest.importorskip("pandas")
    policy, rows = random_policy("rbve", "columns"), random_rows(20)
    table = pandas.DataFrame(rows)
    assert policy.decisions(table).action.tolist() == policy.decisions(rows).action.tolist()
    with pytest.warns(UserWarning, match="far outside the training data"):
        policy.decide(table)
    table.loc[5, "ward"] = "Z"
    with pytest.raises(ValueError, match="row 5: column 'ward': category 'Z'"):
        policy.decide(table)
    with pytest.raises(ValueError, match="lack the column 'ward'"):
        policy.decide(table.drop(columns="ward"))
    with pytest.raises(ValueError, match="had no named columns"):
        random_policy("rbve").decide(table)
