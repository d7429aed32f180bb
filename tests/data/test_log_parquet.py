"""Parquet files: arrays, the types other tools write, damage, and files of our own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.logs import joined, kinds

from rbve.data import Dataset, Episode, load, logs, write
from rbve.data.features import Feature, Features
from rbve.data.formats import parquet, read
from rbve.data.logs import LogOptions
from rbve.data.source import Fault, Source

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    def write_table(row_group: int = 1 << 20, **columns: Any) -> Path:
        path = tmp_path / "log.parquet"
        pq.write_table(pa.table(columns), path, row_group_size=row_group)
        return path

    return write_table


BASE = {"episode": [1, 1, 2], "action": [0, 1, 1], "reward": [1.0, 2.0, 3.0]}


# Arrays


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()),
        pa.list_(pa.float32(), 2),
        pa.large_list(pa.float32()),
        pa.list_(pa.uint8()),
        pa.list_(pa.int64()),
    ],
    ids=str,
)
def test_observations_in_one_column_of_arrays(put: Put, kind: pa.DataType) -> None:
    path = put(**BASE, observation=pa.array([[1, 2], [3, 4], [5, 6]], kind), other=["a", "b", "c"])
    data = joined(path)
    assert data.features is None
    assert data.obs.dtype == kind.value_type.to_pandas_dtype()
    np.testing.assert_array_equal(data.obs, [[1, 2], [3, 4], [3, 4], [5, 6], [5, 6]])


def test_arrays_of_arrays_and_booleans(put: Put) -> None:
    grid = [[[True, False, True], [False, False, False]]] * 3
    data = joined(put(**BASE, grid=pa.array(grid)), LogOptions(observation=("grid",)))
    assert data.obs.shape == (5, 2, 3)
    assert data.obs.dtype == np.bool_
    np.testing.assert_array_equal(data.obs[0], grid[0])


def test_arrays_with_gaps_and_other_sizes_are_named(put: Put) -> None:
    for wrong in ([1.0, 2.0, 3.0], [1.0, None], None, [1.0, float("nan")]):
        column = pa.array([[1.0, 2.0], wrong, [5.0, 6.0]], pa.list_(pa.float32()))
        path = put(**BASE, observation=column)
        with pytest.raises(ValueError, match="row 1: column 'observation'"):
            joined(path)
        found: list[Fault] = []
        data = Dataset.join(read(path, on_fault=found.append).parts)
        assert [fault.kind for fault in found] == ["nan observation"]
        np.testing.assert_array_equal(data.obs[3:], [[5, 6], [5, 6]])


def test_a_final_row_without_an_array_is_a_filler(put: Put) -> None:
    data = joined(
        put(
            episode=[1, 1],
            action=[0, None],
            reward=[1.0, None],
            observation=pa.array([[1.5, 2.5], None]),
        )
    )
    np.testing.assert_array_equal(data.obs, [[1.5, 2.5]] * 2)
    np.testing.assert_array_equal(data.finals_known, [False])


def test_arrays_stand_alone(put: Put) -> None:
    path = put(**BASE, a=[[1.0], [2.0], [3.0]], b=[1, 2, 3])
    with pytest.raises(ValueError, match=r"'a' holds arrays.*--observation a"):
        read(path, options=LogOptions(observation=("a", "b")))


def test_masks_in_arrays(put: Put) -> None:
    legal = [[1, 0, 1], [0, 1, 0], [1, 1, 0]]
    data = joined(put(**BASE, x=[1, 2, 3], legal=legal))
    assert data.legal is not None
    assert data.actions == ("0", "1", "2")  # the mask knows an action that was never taken
    np.testing.assert_array_equal(data.legal[[0, 1, 3]], np.array(legal, bool))


def test_masks_of_another_width_are_named(put: Put) -> None:
    path = put(**BASE, x=[1, 2, 3], legal=[[1, 1], [1, 1, 1], [1, 1]])
    with pytest.raises(
        ValueError, match=r"row 1: column 'legal' holds a mask of 3 and .* 2 actions"
    ):
        joined(path)
    assert kinds(path) == ["mask width"]
    path = put(**BASE, x=[1, 2, 3], legal=[[1, 1], [1, 1], [1, 1]])
    with pytest.raises(
        ValueError, match=r"row 0: column 'legal' holds a mask of 2 and .* 3 actions"
    ):
        joined(path, LogOptions(actions=("0", "1", "2")))


# Types other tools write


def test_floats_stand_for_ids_with_gaps(put: Put) -> None:
    data = joined(
        put(
            episode=pa.array(["b", "b", "a", "a"]).dictionary_encode(),
            action=[1.0, float("nan"), 0.0, float("nan")],
            reward=[1.0, float("nan"), 2.0, float("nan")],
            half=pa.array([1.5, 2.5, 3.5, 4.5], pa.float16()),
            cents=pa.array([1, 2, 3, 4]).cast(pa.decimal128(21, 2)),
            word=pa.array(["v", "u", "v", "w"]).dictionary_encode(),
            wide=pa.array(["u", "v", "u", "v"], pa.large_string()),
            yes=[True, False, True, True],
            day=pa.array([0, 1, 2, 3], pa.date32()),
        )
    )
    np.testing.assert_array_equal(data.offsets, [0, 2, 4])
    np.testing.assert_array_equal(data.action, [1, -1, 0, -1])
    np.testing.assert_array_equal(data.reward, [1, 0, 2, 0])
    assert data.finals_known.all()
    assert data.features is not None
    assert data.features.names == ["half", "cents", "word", "wide", "yes"]  # dates are left out
    np.testing.assert_array_equal(
        data.obs,
        [[1.5, 1, 1, 0, 1], [2.5, 2, 0, 1, 0], [3.5, 3, 1, 0, 1], [4.5, 4, 2, 1, 1]],
    )


def test_flags_with_gaps_are_floats_there(put: Put) -> None:
    gap = float("nan")
    data = joined(put(**BASE, x=[1, 2, 3], terminated=[gap, 1.0, gap], complete=[gap, gap, 0.0]))
    np.testing.assert_array_equal(data.terminated, [True, False])
    np.testing.assert_array_equal(data.complete, [True, False])


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 64])
def test_a_split_episode_wherever_batches_end(
    put: Put, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(parquet, "MAX_ROWS", rows)
    ids = [2, 2, 5, 5, 5, 2, 9]
    path = put(episode=ids, x=[1] * 7, action=[0] * 7, reward=[0.0] * 7)
    with pytest.raises(ValueError, match=r"row 5: episode 2 .* after row 0"):
        joined(path)


def test_columns_that_are_no_observation_are_named(put: Put) -> None:
    path = put(**BASE, x=[1, 2, 3], day=pa.array([0, 1, 2], pa.date32()))
    assert "left out, being neither numbers nor categories: day" in read(path).notes
    with pytest.raises(ValueError, match=r"column 'day' holds date32"):
        read(path, options=LogOptions(observation=("day",)))


def test_dates_order_time(put: Put) -> None:
    stamps = pa.array([5, 3, 1], pa.timestamp("ns"))
    with pytest.raises(ValueError, match=r"row 1: column 'time' is 1970.*0003 after 1970.*0005"):
        joined(put(**BASE, x=[1, 2, 3], time=stamps))
    assert joined(put(**BASE, x=[1, 2, 3], time=stamps[::-1])).num_transitions == 3


def test_a_column_of_no_use_may_be_anything(put: Put) -> None:
    data = joined(put(**BASE, x=[1, 2, 3], blob=[b"1", b"2", b"3"], map=[{"a": 1}] * 3))
    assert data.features is not None
    assert data.features.names == ["x"]


# Parts


def test_parts_hold_whole_episodes_wherever_batches_end(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = np.array([1, 7, 2, 40, 1, 1, 13, 3, 5, 27])
    ids = np.repeat(np.arange(10), lengths)
    rng = np.random.default_rng(2)
    columns = {
        "episode": ids,
        "time": np.concatenate([np.arange(length) for length in lengths]),
        "x": rng.normal(size=100),
        "action": rng.integers(3, size=100),
        "reward": rng.normal(size=100).astype(np.float32),
        "truncated": np.append(ids[1:] != ids[:-1], True),
    }
    path = put(row_group=11, **columns)
    whole = joined(path)
    np.testing.assert_array_equal(whole.lengths, lengths)
    decisions = np.delete(np.arange(110), whole.offsets[1:] - 1)
    np.testing.assert_array_equal(whole.obs[decisions, 0], columns["x"])
    np.testing.assert_array_equal(whole.action[decisions], columns["action"])
    np.testing.assert_array_equal(whole.reward[decisions], columns["reward"])
    assert not whole.terminated.any()
    monkeypatch.setattr(logs, "PART_BYTES", 72 * 10)
    for size in (1, 3, 64):
        monkeypatch.setattr(parquet, "MAX_ROWS", size)
        source = read(path)
        parts = list(source.parts)
        assert len(parts) >= 3
        assert source.position() == source.total == 100
        again = Dataset.join(parts)
        for name in ("obs", "action", "reward", "offsets", "terminated", "episode_return"):
            np.testing.assert_array_equal(getattr(again, name), getattr(whole, name))


# Damage


def test_damaged_files_are_named(put: Put, tmp_path: Path) -> None:
    whole = put(**BASE, x=[1, 2, 3]).read_bytes()
    path = tmp_path / "bad.parquet"
    for content in (whole[:-20], whole[: len(whole) // 2], b"PAR1", b"x" * 100):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"bad.parquet: not a whole Parquet file"):
            read(path)
        assert kinds(path) == ["damaged file"]
    path.write_bytes(b"")
    assert kinds(path) == ["empty file"]
    pq.write_table(pa.table({"episode": pa.array([], pa.int64())}), path)
    assert kinds(path) == ["empty file"]


def test_damage_within_a_column_is_named(put: Put, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    whole = put(
        episode=np.arange(5000) // 10,
        action=[0] * 5000,
        reward=[0.0] * 5000,
        x=rng.normal(size=5000),
        row_group=1000,
    ).read_bytes()
    path = tmp_path / "bad.parquet"
    failed = 0
    for start in range(100, len(whole) - 2000, len(whole) // 23):
        path.write_bytes(whole[:start] + os.urandom(40) + whole[start + 40 :])
        failed += "damaged file" in kinds(path)
    assert failed


# Our own files


def test_our_own_metadata_is_checked(tmp_path: Path) -> None:
    data = Dataset.from_episodes([Episode.from_steps(np.eye(2), [0], [1.0], True)], 2)
    path = tmp_path / "own.parquet"
    write(data, path)
    table = pq.read_table(path)
    facts = json.loads(table.schema.metadata[b"rbve"])
    for change in (
        {"actions": ["a", "a"]},
        {"actions": [1]},
        {"shape": [0]},
        {"shape": "x"},
        {"dtype": "O"},
        {"columns": ["observation", "x"]},
        {"features": [{"name": "x", "kind": "number", "mean": 0, "scale": 1}]},
        {"provenance": []},
        {"schema": 7},
    ):
        changed = {b"rbve": json.dumps({**facts, **change}).encode()}
        pq.write_table(table.replace_schema_metadata(changed), path)
        with pytest.raises(ValueError, match=r"own.parquet.*damaged"):
            read(path)
    pq.write_table(table.replace_schema_metadata({b"rbve": b"{"}), path)
    with pytest.raises(ValueError, match=r"own.parquet.*damaged"):
        read(path)


def test_flags_outrank_what_our_files_say(tmp_path: Path) -> None:
    features = Features((Feature("age", mean=1.0), Feature("reward", scale=2.0)))
    data = Dataset.from_episodes(
        [Episode.from_steps(np.array([[1.0, 2.0], [3.0, 4.0]]), [1], [1.0], True)],
        ["a", "b", "c"],
        features=features,
    )
    write(data, tmp_path / "own.parquet")
    assert joined(tmp_path / "own.parquet").features == features
    again = joined(tmp_path / "own.parquet", LogOptions(observation=("observation_reward",)))
    assert again.actions == ("b",)
    np.testing.assert_array_equal(again.obs, [[2], [4]])


def test_a_file_is_not_replaced_by_accident(tmp_path: Path) -> None:
    data = Dataset.from_episodes([Episode.from_steps(np.eye(2), [0], [1.0], True)], 2)
    for name in ("out.parquet", "out.csv"):
        path = tmp_path / name
        write(data, path)
        held = path.read_bytes()
        with pytest.raises(ValueError, match=f"{name}: already exists; pass --overwrite"):
            write(data, path)

        def broken(first: Dataset = data) -> Any:
            yield first
            yield replace(first, action=np.array([7, -1], np.int32))

        with pytest.raises(ValueError, match="episode 1, step 0: action 7"):
            write(Source(broken()), path, overwrite=True)
        assert path.read_bytes() == held
        write(data, path, overwrite=True)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        write(data, tmp_path / "folder.csv", overwrite=True)
    with pytest.raises(ValueError, match="no episode to write"):
        write(Source(iter([])), tmp_path / "none.parquet")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "folder.csv",
        "out.csv",
        "out.parquet",
    ]
    assert load(tmp_path / "out.parquet").num_episodes == 1
