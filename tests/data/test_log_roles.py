"""A log is read in two passes, and a new role of a column is one field."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.logs import joined

from rbve.data.formats import csv, read
from rbve.data.logs import LogOptions, roles
from rbve.data.logs.roles import Assembly, Role

LOG = "episode,x,action,reward,cost\n1,0.5,0,3,1\n1,1.5,1,3,2\n2,2.5,1,4,0.5\n"


@pytest.mark.parametrize(
    "rows", ["1,0,a,0,1\n1,1,b,1,2\n2,2,a,0,3\n", "v,1,a,0,1\nw,1,b,1,2\nv,2,a,0,3\n"]
)
def test_a_text_file_is_read_twice_beside_its_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    """Also where rows of an episode do not stand together."""
    passes: list[int] = []
    batches = csv.TextLog.batches

    def counted(self: Any, columns: Any) -> Any:
        passes.append(len(columns))
        return batches(self, columns)

    monkeypatch.setattr(csv.TextLog, "batches", counted)
    path = tmp_path / "log.csv"
    path.write_text("episode,time,x,action,reward\n" + rows)
    assert joined(path).num_episodes == 2
    assert passes == [5, 5]


def subtract(rows: Assembly, name: str) -> None:
    rows.columns["reward"] -= rows.table[name].astype(np.float32)[rows.source]
    rows.columns["reward"][rows.last] = 0


COST = Role(
    "amount",
    hindsight=True,
    accepts=lambda values: values >= 0,
    fault="bad cost",
    needs="a cost is 0 or more",
    enter=subtract,
)


def test_a_role_is_one_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its flag, its reading, its check and its way into the Dataset follow."""
    wider = dataclasses.make_dataclass(
        "Wider",
        [("cost", str | None, dataclasses.field(default=None, metadata={"role": COST}))],
        bases=(LogOptions,),
        frozen=True,
    )
    monkeypatch.setitem(roles.ROLES, "cost", COST)
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    data = joined(path, wider())
    np.testing.assert_array_equal(data.reward, [2, 1, 0, 3.5, 0])
    assert data.features is not None
    assert data.features.names == ["x"]
    with pytest.raises(ValueError, match="'cost' is the cost, which nobody knows before deciding"):
        read(path, options=wider(observation=("x", "cost")))
    path.write_text(LOG.replace("3,2", "3,-2"))
    with pytest.raises(ValueError, match="line 3: column 'cost' is -2; a cost is 0 or more"):
        joined(path, wider())
