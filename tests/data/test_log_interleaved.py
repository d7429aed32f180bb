"""Rows of an episode need not stand together: they are grouped by id and ordered by time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.logs import joined, joined_with_notes, said

from rbve.data import Dataset, logs
from rbve.data.formats import csv, read
from rbve.data.logs import LogOptions
from rbve.data.source import Fault

Make = Callable[..., Path]


def rows(count: int = 200, length: int = 7) -> dict[str, np.ndarray]:
    """Episodes one after another; x tells every row apart."""
    total = count * length
    return {
        "episode": np.repeat(np.random.default_rng(1).permutation(count), length),
        "time": np.tile(np.arange(length), count),
        "x": np.arange(total) / 8,
        "word": np.array(["a", "b", "c"])[np.arange(total) % 3],
        "action": np.arange(total) % 4,
        "reward": np.arange(total) % 5 / 4,
        "terminated": np.tile([0] * (length - 1) + [1], count),
    }


def taken(columns: dict[str, np.ndarray], order: np.ndarray) -> dict[str, list[Any]]:
    return {name: column[order].tolist() for name, column in columns.items()}


def same(first: Dataset, second: Dataset) -> None:
    """Up to the order of episodes, which x tells."""
    by_x = [np.argsort(data.obs[data.offsets[:-1], 0]) for data in (first, second)]
    first, second = (
        data.select(order, "") for data, order in zip((first, second), by_x, strict=True)
    )
    for name in ("obs", "action", "reward", "offsets", "terminated", "episode_return"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


@pytest.mark.parametrize("part_bytes", [1 << 26, 4096])
def test_shuffled_rows_give_the_same_episodes(
    make: Make, part_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PART_BYTES", part_bytes)
    monkeypatch.setattr(csv, "BLOCK", 5000)
    columns = rows()
    whole = joined(make(**taken(columns, np.arange(1400))))
    shuffled = make(**taken(columns, np.random.default_rng(0).permutation(1400)))
    source = read(shuffled)
    parts = list(source.parts)
    assert (len(parts) > 3) == (part_bytes == 4096)
    same(Dataset.join(parts), whole)
    assert said(source.notes, "grouped by 'episode' and ordered by 'time'", "begins in")


def test_without_a_time_rows_stay_in_the_order_of_the_file(make: Make) -> None:
    columns = rows()
    order = np.lexsort((columns["episode"], columns["time"]))  # all first steps, all second ones...
    path = make(**taken(columns, order))
    data, notes = joined_with_notes(path, LogOptions(time="", observation=("x", "word")))
    same(data, joined(make(**taken(columns, np.arange(1400)))))
    assert said(notes, "ordered as they stand")


def test_different_ids_are_different_episodes(tmp_path: Path) -> None:
    """Of numbers too that Python hashes alike."""
    columns = {"episode": [-1.0, -2.0, -1.0, -2.0], "time": [0, 0, 1, 1], "x": [0, 2, 1, 3]}
    table = pa.table({**columns, "action": [0, 1, 0, 1], "reward": [1.0, 2.0, 3.0, 4.0]})
    pq.write_table(table, tmp_path / "log.parquet")
    data = joined(tmp_path / "log.parquet")
    assert data.episode_return.tolist() == [4.0, 6.0]


def test_a_final_row_comes_last(make: Make) -> None:
    path = make(
        episode=["a", "b", "a", "b", "a"],
        time=[1, 0, 0, 1, None],
        x=[1, 3, 0, 4, 2],
        action=[0, 1, 1, 0, None],
        reward=[1, 2, 3, 4, None],
    )
    data = joined(path)
    np.testing.assert_array_equal(data.obs[:, 0], [0, 1, 2, 3, 4, 4])
    np.testing.assert_array_equal(data.action, [1, 0, -1, 1, 0, -1])


def test_rows_keep_their_lines(make: Make) -> None:
    columns = taken(rows(), np.random.default_rng(0).permutation(1400))
    columns["reward"][700] = None
    path = make(**columns)
    found: list[Fault] = []
    list(read(path, on_fault=found.append).parts)
    place = "line 702" if path.suffix == ".csv" else "row 700"
    assert [fault.kind for fault in found] == ["nan reward"]
    assert found[0].text.startswith(f"{path}: {place}: ")


def test_rows_that_stand_together_are_not_spilled(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("spilled")

    monkeypatch.setattr(logs, "_spill", refuse)
    data, notes = joined_with_notes(make(**taken(rows(), np.arange(1400))))
    assert data.num_episodes == 200
    assert not said(notes, "grouped")


def test_no_room_for_temporary_files_is_told(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    path = make(**taken(rows(), np.random.default_rng(0).permutation(1400)))
    with pytest.raises(ValueError, match=r"temporary files in .* \(No space left.*set TMPDIR"):
        joined(path)
