"""Logs and stores in many files: read as one, whole or in pieces at the same time."""

from __future__ import annotations

import filecmp
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from support.cli import run
from support.logs import joined, joined_with_notes, said

from rbve.data import load, write
from rbve.data.convert import convert
from rbve.data.formats import read
from rbve.data.logs import LogOptions
from rbve.data.manifest import MANIFEST

LENGTH, EPISODES = 7, 30


def log(times: str = "whole") -> pa.Table:
    rng = np.random.default_rng(0)
    number = np.arange(LENGTH * EPISODES)
    return pa.table(
        {
            "episode": number // LENGTH,
            "time": number % LENGTH * (1 if times == "whole" else 2),
            "age": rng.normal(40, 10, len(number)),
            "ward": rng.choice(["A", "B", "C"], len(number)),
            "action": rng.integers(3, size=len(number)),
            "reward": rng.normal(size=len(number)).astype(np.float32),
            "terminated": number % LENGTH == LENGTH - 1,
        }
    )


def cut(folder: Path, table: pa.Table, rows: int, suffix: str = "parquet") -> Path:
    """Files of so many rows each."""
    folder.mkdir()
    for number, start in enumerate(range(0, len(table), rows)):
        part, file = table.slice(start, rows), folder / f"part-{number:03}.{suffix}"
        pq.write_table(part, file) if suffix == "parquet" else arrow_csv.write_csv(part, file)
    return folder


def columns(store: Path) -> list[str]:
    return sorted(file.name for file in store.glob("*.bin"))


def same_columns(one: Path, other: Path) -> bool:
    names = columns(one)
    assert names == columns(other)
    assert names
    return not any(filecmp.cmpfiles(one, other, names, shallow=False)[1:])


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("rows", [2 * LENGTH, 2 * LENGTH + 1], ids=["whole episodes", "cut ones"])
def test_many_files_are_the_store_of_the_one(tmp_path: Path, suffix: str, rows: int) -> None:
    whole = cut(tmp_path / "whole", log(), 10**6, suffix) / f"part-000.{suffix}"
    notes = convert(whole, tmp_path / "one")
    many = cut(tmp_path / "many", log(), rows, suffix)
    assert convert(many, tmp_path / "store") == notes
    assert same_columns(tmp_path / "store", tmp_path / "one")
    one, data = load(tmp_path / "one"), load(tmp_path / "store")  # checks checksums
    assert one.features is not None
    assert data.features is not None
    assert one.actions == data.actions
    for mine, theirs in zip(data.features.columns, one.features.columns, strict=True):
        assert mine.categories == theirs.categories
        assert (mine.mean, mine.scale) == pytest.approx((theirs.mean, theirs.scale), rel=1e-12)
        assert (mine.low, mine.high) == (theirs.low, theirs.high)


def test_pieces_are_read_apart_only_if_no_episode_goes_on_in_the_next_file(tmp_path: Path) -> None:
    apart = read(cut(tmp_path / "apart", log(), 2 * LENGTH)).pieces()
    assert len(apart) == EPISODES // 2
    assert [part.num_episodes for piece in apart for part in piece.parts] == [2] * (EPISODES // 2)
    assert not read(cut(tmp_path / "cut", log(), LENGTH + 1)).pieces()
    # Nothing but flags says where episodes end: the row before may not have one.
    flagged = cut(tmp_path / "flags", log().drop_columns(["episode"]), 2 * LENGTH)
    source = read(flagged, options=LogOptions(observation=("age",)))
    assert not source.pieces()
    assert sum(part.num_episodes for part in source.parts) == EPISODES


def test_pieces_and_the_whole_are_equal_also_bit_for_bit_in_features(tmp_path: Path) -> None:
    many = cut(tmp_path / "many", log(), 2 * LENGTH)
    convert(many, tmp_path / "store")
    assert load(tmp_path / "store").features == joined(many).features


def test_notes_count_over_all_pieces(tmp_path: Path) -> None:
    table = log("every second").to_pydict()
    table["terminated"] = [False] * len(table["time"])
    table["time"][3 * LENGTH :] = [each // 2 for each in table["time"][3 * LENGTH :]]
    many = cut(tmp_path / "many", pa.table(table), 2 * LENGTH)
    notes = convert(many, tmp_path / "store", options={"observation": ["age"]})
    assert notes == joined_with_notes(many, LogOptions(observation=("age",)))[1]
    assert said(notes, "30 episodes end without a flag")
    assert said(notes, f"{3 * (LENGTH - 1)} steps differ", "the first in part-000.parquet, row 1")


def test_a_file_without_a_row_is_refused_and_what_is_no_data_passed_over(tmp_path: Path) -> None:
    table = log()
    many = cut(tmp_path / "many", table, 10 * LENGTH)
    pq.write_table(table.slice(0, 0), many / "part-0005.parquet")
    with pytest.raises(ValueError, match=r"part-0005\.parquet: holds no row"):
        convert(many, tmp_path / "refused")
    (many / "part-0005.parquet").unlink()
    (many / "_SUCCESS").touch()  # beside shards, as Spark leaves it
    (many / ".hidden").touch()
    convert(many, tmp_path / "store")
    assert load(tmp_path / "store").num_episodes == EPISODES


def test_a_glob_chooses_files(tmp_path: Path) -> None:
    many = cut(tmp_path / "many", log(), 5 * LENGTH)
    (many / "README.txt").write_text("visits")
    assert joined(many / "part-00[01].parquet").num_episodes == 10
    with pytest.raises(
        ValueError, match=r"README\.txt beside part-000\.parquet.*by a glob such as"
    ):
        read(many, format="shards")
    with pytest.raises(ValueError, match="no file matches"):
        read(many / "*.csv")


def broken(folder: Path, file: str, **changes: Any) -> Path:
    """One file with other columns."""
    table = pq.read_table(folder / file)
    for name, values in changes.items():
        table = table.drop_columns([name] if name in table.column_names else [])
        table = table if values is None else table.append_column(name, pa.array(values))
    pq.write_table(table, folder / file)
    return folder


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"age": None}, "part-000.parquet has a column 'age' and part-002.parquet has not"),
        ({"age": ["x"] * 35}, "'age' is string in part-002.parquet and double in part-000"),
        (
            {"reward": np.full(35, np.nan, np.float32)},
            "part-002.parquet, row 0: column 'reward' is empty",
        ),
    ],
    ids=["lacking", "type", "value"],
)
def test_faults_name_the_file(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    many = broken(cut(tmp_path / "many", log(), 5 * LENGTH), "part-002.parquet", **changes)
    with pytest.raises(ValueError, match=r".") as refused:
        convert(many, tmp_path / "store", options={"observation": ["age"]})
    assert said in str(refused.value)
    assert str(refused.value).startswith(f"{many}: ")
    assert not (tmp_path / "store").exists()
    assert not list(tmp_path.glob(".store*"))


def test_lines_of_texts_are_those_of_their_file(tmp_path: Path) -> None:
    many = cut(tmp_path / "many", log(), 5 * LENGTH, "csv")
    file = many / "part-001.csv"
    lines = file.read_text().splitlines()
    lines[4] = lines[4].replace(lines[4].split(",")[2], '"old"')
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"part-001\.csv, line 5: column 'age' holds 'old'"):
        convert(many, tmp_path / "store")
    lines[4] += ",1,2"
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"part-001\.csv: line 5: 9 fields"):
        convert(many, tmp_path / "store")


def test_files_that_rbve_wrote_number_their_episodes_anew(tmp_path: Path) -> None:
    whole = joined(cut(tmp_path / "log", log(), 10**6) / "part-000.parquet")
    (tmp_path / "many").mkdir()
    for number, (start, stop) in enumerate(((0, 1), (1, 2), (2, EPISODES))):
        write(whole.part(start, stop), tmp_path / "many" / f"{number}.parquet")
    data = joined(tmp_path / "many")
    assert data.num_episodes == EPISODES
    np.testing.assert_array_equal(data.offsets, whole.offsets)
    np.testing.assert_array_equal(data.obs, whole.obs)
    convert(tmp_path / "many", tmp_path / "store")
    np.testing.assert_array_equal(load(tmp_path / "store").obs, whole.obs)


def test_stores_are_read_as_one(tmp_path: Path) -> None:
    table, stores = log(), tmp_path / "stores"
    for number, start in enumerate((0, 10, 25)):
        stop = (10, 25, EPISODES)[number]
        file = tmp_path / f"{number}.parquet"
        pq.write_table(table.slice(start * LENGTH, (stop - start) * LENGTH), file)
        convert(file, stores / f"day-{number}")
    data, whole = load(stores), joined(cut(tmp_path / "whole", table, 10**6) / "part-000.parquet")
    np.testing.assert_array_equal(data.obs, whole.obs)
    np.testing.assert_array_equal(data.reward, whole.reward)
    assert data.features is not None
    assert whole.features is not None
    age, one = data.features.columns[0], whole.features.columns[0]
    assert (age.low, age.high) == (one.low, one.high)
    assert (age.mean, age.scale) == pytest.approx((one.mean, one.scale), rel=1e-12)
    convert(stores, tmp_path / "joined")
    assert load(tmp_path / "joined").num_episodes == EPISODES


def test_stores_that_mean_other_things_are_no_dataset(tmp_path: Path) -> None:
    table = log()
    for number, names in enumerate((["age"], ["age", "ward"])):
        pq.write_table(table, tmp_path / "log.parquet")
        options = {"observation": names}
        convert(tmp_path / "log.parquet", tmp_path / "stores" / str(number), options=options)
    with pytest.raises(ValueError, match=r"1: has other observations than .*0, so they are not"):
        load(tmp_path / "stores")
    manifest = tmp_path / "stores" / "1" / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"schema": 9}))
    with pytest.raises(ValueError, match="schema 9"):
        load(tmp_path / "stores")


def test_the_command_reads_folders(tmp_path: Path) -> None:
    many = cut(tmp_path / "many", log(), 5 * LENGTH)
    done = run("convert", many, tmp_path / "store", "--observation", "age", "ward")
    assert done.code == 0, done.err
    assert "30 episodes, 210 decisions, 3 actions" in done.out
    assert run("inspect", many, "--observation", "age").code in (0, 3, 4)
    (many / "part-001.parquet").write_bytes(b"PAR1")
    refused = run("convert", many, tmp_path / "again")
    assert refused.code == 2
    assert "part-001.parquet: not a whole Parquet file" in refused.err
