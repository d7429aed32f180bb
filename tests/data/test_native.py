"""The native store: what goes in comes out, damage is named, a crash costs only the last append."""

from __future__ import annotations

import errno
import inspect
import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbve import files
from rbve.data.dataset import NO_ACTION, OPTIONAL_COLUMNS, Dataset, Episode
from rbve.data.formats import load, native, write
from rbve.data.formats.native import Writer
from rbve.data.manifest import EPISODE_COLUMNS, MANIFEST
from rbve.data.source import Source

COLUMNS = ("obs", "action", "reward", *OPTIONAL_COLUMNS, *EPISODE_COLUMNS)
FSYNCS_PER_APPEND = len(COLUMNS) + 1  # every column, then the manifest


def numbered(index: int) -> Episode:
    """An episode whose every number tells where it comes from; every fifth has one step."""
    length = 1 + index % 5
    steps = np.arange(length + 1)
    last = steps == length
    return Episode(
        obs=((7 * index + 31 * steps)[:, None] + np.arange(6)).reshape(-1, 2, 3).astype(np.uint8),
        action=np.where(last, NO_ACTION, (index + steps) % 3).astype(np.int32),
        reward=np.where(last, 0, index + steps / 8).astype(np.float32),
        terminated=index % 2 == 0,
        complete=index % 7 != 6,
        episode_return=index + 0.1,
        final_observed=index % 4 != 3,
        executed=np.where(last, NO_ACTION, (index + steps + 1) % 3).astype(np.int32),
        legal=np.ones((length + 1, 3), np.bool_),
        propensity=(1 / (1 + index + steps)).astype(np.float32),
    )


def numbered_dataset(count: int) -> Dataset:
    return Dataset.from_episodes(map(numbered, range(count)), ["left", "stay", "right"])


def plain(index: int) -> Episode:
    return numbered(index)._replace(executed=None, legal=None, propensity=None)


def assert_same(found: Dataset, expected: Dataset) -> None:
    for name in ("offsets", *COLUMNS):
        if name == "length":
            continue
        name = "finals_known" if name == "final_observed" else name
        ours, theirs = getattr(found, name), getattr(expected, name)
        if theirs is None:
            assert ours is None, name
            continue
        assert ours.dtype == theirs.dtype, name
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    assert found.actions == expected.actions


@pytest.fixture
def store(tmp_path: Path) -> Path:
    write(numbered_dataset(12), tmp_path / "data")
    return tmp_path / "data"


def edit(store: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((store / MANIFEST).read_text())
    change(manifest)
    (store / MANIFEST).write_text(json.dumps(manifest))


# Round trips


def test_round_trip_with_every_column(store: Path) -> None:
    found = load(store)
    assert_same(found, numbered_dataset(12))
    assert found.provenance == {"finished": True}
    assert sorted(file.name for file in store.iterdir()) == sorted(
        [MANIFEST, *(f"{name}.bin" for name in COLUMNS)]
    )


def test_stores_from_before_logs_could_lack_final_observations(tmp_path: Path) -> None:
    data = Dataset.from_episodes(map(plain, range(3)), 3)
    write(data, tmp_path / "data")
    edit(tmp_path / "data", lambda manifest: manifest["columns"].pop("final_observed"))
    (tmp_path / "data" / "final_observed.bin").unlink()
    assert_same(load(tmp_path / "data"), data)


def test_the_old_store_stands_until_the_new_one_does(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    removed = files.remove
    monkeypatch.setattr(
        files, "remove", lambda path: (seen.append((path, store.exists())), removed(path))
    )
    write(numbered_dataset(3), store, overwrite=True)
    assert load(store).num_episodes == 3
    assert any(path.name.endswith(".old") for path, _ in seen)
    assert all(stood for _, stood in seen)
    assert [each.name for each in store.parent.iterdir()] == [store.name]


def test_round_trip_without_optional_columns(tmp_path: Path) -> None:
    data = Dataset.from_episodes(map(plain, range(4)), 3, {"env": "here", "seed": 3})
    write(data, tmp_path / "data")
    assert_same(load(tmp_path / "data"), data)
    assert load(tmp_path / "data").provenance == {"env": "here", "seed": 3, "finished": True}
    assert load(str(tmp_path / "data")).executed is None


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "uint16", "int64", "float16", "float32", "float64", ">f4"]
)
@pytest.mark.parametrize("shape", [(), (4,), (1, 6), (3, 2, 2)])
def test_observations_keep_dtype_and_shape(
    tmp_path: Path, dtype: str, shape: tuple[int, ...]
) -> None:
    obs = (np.arange(3 * np.prod(shape, dtype=int)) % 120).reshape(3, *shape).astype(dtype)
    data = Dataset.from_episodes([Episode.from_steps(obs, [0, 1], [1, 2], True)], 2)
    write(data, tmp_path / "data")
    found = load(tmp_path / "data").obs
    assert found.dtype == np.dtype(dtype).newbyteorder("<")
    np.testing.assert_array_equal(found, obs)


def test_one_step_episodes(tmp_path: Path) -> None:
    data = numbered_dataset(11).select(np.array([0, 5, 10]), "one step")
    assert data.lengths.tolist() == [1, 1, 1]
    write(data, tmp_path / "data")
    assert_same(load(tmp_path / "data"), data)


def test_rows_stay_on_disk(store: Path) -> None:
    found = load(store)
    for name in native.ROW_COLUMNS:
        column = getattr(found, name)
        assert isinstance(column, np.memmap), name
        assert not column.flags.writeable, name
    assert load(store, verify=False).obs[5].tolist() == found.obs[5].tolist()


@pytest.mark.parametrize("sizes", [[12], [1] * 12, [5, 1, 6], [0, 11, 0, 1]])
def test_appending_equals_writing_at_once(tmp_path: Path, store: Path, sizes: list[int]) -> None:
    writer = Writer(tmp_path / "appended", ["left", "stay", "right"])
    index = 0
    for size in sizes:
        writer.append([numbered(index + k) for k in range(size)])
        index += size
        if index:
            assert_same(load(tmp_path / "appended"), numbered_dataset(index))
            assert load(tmp_path / "appended").provenance == {"finished": False}
    writer.finish()
    for file in sorted(store.iterdir()):
        assert (tmp_path / "appended" / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize("episodes_at_once", [1, 5, 12, 1000])
def test_the_size_of_groups_leaves_no_trace(
    tmp_path: Path, store: Path, episodes_at_once: int
) -> None:
    data = numbered_dataset(12)
    size = episodes_at_once
    parts = (data.part(k, min(k + size, 12)) for k in range(0, 12, size))
    write(Source(parts), tmp_path / "again")
    for file in sorted(store.iterdir()):
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name


def test_a_loaded_part_can_be_written(tmp_path: Path, store: Path) -> None:
    part = load(store).subsample(0.5, seed=1)
    write(part, tmp_path / "part")
    assert_same(load(tmp_path / "part"), part)


# What a writer refuses


def test_a_wrong_episode_is_named_and_not_stored(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "data", 3)
    writer.append([numbered(0)])
    bad = numbered(2)._replace(action=np.array([0, 3, 1, NO_ACTION]))
    with pytest.raises(ValueError, match=r"data: episode 2, step 1: action 3 is not one"):
        writer.append([numbered(1), bad])
    with pytest.raises(ValueError, match=r"data: episode 1: observations have shape \(3,\)"):
        writer.append([numbered(1)._replace(obs=np.zeros((3, 3), np.uint8))])
    writer.append([numbered(1)])
    assert load(tmp_path / "data").num_episodes == 2


def test_columns_come_with_every_episode_or_none(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "data", 3)
    with pytest.raises(ValueError, match="data: episode 1 lacks 'legal'"):
        writer.append([numbered(0), numbered(1)._replace(legal=None)])
    writer.append([numbered(0)])
    with pytest.raises(ValueError, match="data: episodes from 1 on have the columns"):
        writer.append([plain(1)])
    assert load(tmp_path / "data").num_episodes == 1


def test_observations_are_not_squeezed_into_a_smaller_dtype(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "data", 3)
    writer.append([numbered(0)])
    wide = numbered(1)._replace(obs=np.full((3, 2, 3), 0.5))
    with pytest.raises(ValueError, match=r"episodes from 1 on have observations of float64.*\|u1"):
        writer.append([wide])
    with pytest.raises(ValueError, match="cannot hold"):
        Writer(tmp_path / "long", 3).append([wide._replace(obs=wide.obs.astype(np.longdouble))])


# Damage


@pytest.mark.parametrize("column", COLUMNS)
def test_a_flipped_bit_is_refused(store: Path, column: str) -> None:
    file = store / f"{column}.bin"
    content = bytearray(file.read_bytes())
    for place in (0, len(content) // 2, len(content) - 1):
        damaged = content.copy()
        damaged[place] ^= 1
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"{column}\.bin: checksum does not match"):
            load(store)
    file.write_bytes(content)
    assert_same(load(store), numbered_dataset(12))


@pytest.mark.parametrize("column", COLUMNS)
def test_a_short_or_missing_file_is_refused(store: Path, column: str) -> None:
    file = store / f"{column}.bin"
    file.write_bytes(file.read_bytes()[:-1])
    for verify in (True, False):
        with pytest.raises(ValueError, match=rf"{column}\.bin: missing or shorter"):
            load(store, verify=verify)
    file.unlink()
    with pytest.raises(ValueError, match=rf"{column}\.bin: missing or shorter"):
        load(store)


def test_bytes_beyond_the_count_are_ignored(store: Path) -> None:
    for column in COLUMNS:
        with open(store / f"{column}.bin", "ab") as file:
            file.write(b"of an append that was cut off")
    assert_same(load(store), numbered_dataset(12))


@pytest.mark.parametrize("column", sorted(set(COLUMNS) - set(OPTIONAL_COLUMNS)))
def test_a_column_missing_from_the_manifest_is_refused(store: Path, column: str) -> None:
    edit(store, lambda manifest: manifest["columns"].pop(column))
    with pytest.raises(ValueError, match=rf"manifest\.json: lists no column '{column}'"):
        load(store)


def test_there_is_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere: no such dataset; make one with"):
        load(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="folder: no dataset of a known format"):
        load(tmp_path / "folder")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="file: no dataset of a known format"):
        load(tmp_path / "file")


def test_an_empty_dataset_is_refused(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "data", 3)
    with pytest.raises(ValueError, match="data: the dataset is empty"):
        load(tmp_path / "data")
    writer.append([])
    writer.finish()
    with pytest.raises(ValueError, match="data: the dataset is empty"):
        load(tmp_path / "data")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00garbage",
        b"\x00" * 100,
        b"[" * 100_000,
        b"null",
        b"[]",
        b"3",
        b'"rbve"',
        b"{}",
        b'{"format": "other"}',
        b'{"format": "rbve"}',
        b'{"format": "rbve", "schema": 1}',
    ],
)
def test_a_manifest_that_is_none_is_refused(store: Path, content: bytes) -> None:
    (store / MANIFEST).write_bytes(content)
    with pytest.raises(ValueError, match=r"manifest\.json: "):
        load(store)


def test_another_schema_is_refused(store: Path) -> None:
    edit(store, lambda manifest: manifest.update(schema=2))
    with pytest.raises(ValueError, match=r"manifest\.json: schema 2, .* reads schema 1"):
        load(store)


WRONG = (None, True, 0, -1, 2**70, 0.5, float("nan"), "", "x", [], [None], [1, "a"], {}, {"a": 1})
MANIFEST_FIELDS = ("finished", "episodes", "rows", "actions", "columns", "provenance")
COLUMN_FIELDS = ("file", "dtype", "shape", "count", "crc32")


@pytest.mark.parametrize("field", ["format", "schema", *MANIFEST_FIELDS])
def test_a_wrong_field_is_refused(store: Path, field: str) -> None:
    original = (store / MANIFEST).read_text()
    right = json.loads(original)[field]
    for wrong in WRONG:
        edit(store, lambda manifest, wrong=wrong: manifest.update({field: wrong}))
        if wrong == right or (field == "provenance" and isinstance(wrong, dict)):
            assert_same(load(store), numbered_dataset(12))
        else:
            with pytest.raises(ValueError) as refusal:
                load(store)
            assert str(store) in str(refusal.value), f"{field} {wrong!r}"
        (store / MANIFEST).write_text(original)
    edit(store, lambda manifest: manifest.pop(field))
    with pytest.raises(ValueError, match=r"manifest\.json: "):
        load(store)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_wrong_field_of_a_column_is_refused(store: Path, column: str) -> None:
    original = (store / MANIFEST).read_text()
    for field in COLUMN_FIELDS:
        right = json.loads(original)["columns"][column][field]
        for wrong in (*WRONG, "|O", "O", "<f4", "<i4", "f4,f4", "|S4", [0], [-1], [10**9]):
            if wrong == right:
                continue

            def spoil(manifest: dict[str, Any], field: str = field, wrong: Any = wrong) -> None:
                manifest["columns"][column][field] = wrong

            edit(store, spoil)
            with pytest.raises(ValueError) as refusal:
                load(store)
            assert str(store) in str(refusal.value), f"{field} {wrong!r}"
            assert column in str(refusal.value) or field in str(refusal.value)
            (store / MANIFEST).write_text(original)
        edit(store, lambda manifest, field=field: manifest["columns"][column].pop(field))
        with pytest.raises(ValueError, match=rf"manifest\.json: column '{column}': '{field}'"):
            load(store)
        (store / MANIFEST).write_text(original)
    for wrong in WRONG:
        edit(store, lambda manifest, wrong=wrong: manifest["columns"].update({column: wrong}))
        with pytest.raises(ValueError, match=rf"manifest\.json: column '{column}'"):
            load(store)


@pytest.mark.parametrize(
    "file", ["../outside.bin", "{outside}", "/etc/hostname", "..", ".", "", "reward.bin"]
)
def test_a_column_lies_in_its_own_file(store: Path, file: str) -> None:
    outside = store.parent / "outside.bin"
    outside.write_bytes((store / "action.bin").read_bytes())
    file = file.format(outside=outside)
    edit(store, lambda manifest: manifest["columns"]["action"].update(file=file))
    with pytest.raises(ValueError, match=r"manifest\.json: column 'action': its file must be"):
        load(store)


def test_an_unknown_column_is_refused(store: Path) -> None:
    def add(manifest: dict[str, Any]) -> None:
        manifest["columns"]["colour"] = {**manifest["columns"]["action"], "file": "colour.bin"}

    edit(store, add)
    with pytest.raises(ValueError, match="column 'colour': this version knows no such column"):
        load(store)


def test_names_and_action_ids_agree(store: Path) -> None:
    edit(store, lambda manifest: manifest["columns"].pop("legal"))
    edit(store, lambda manifest: manifest.update(actions=["left", "right"]))
    with pytest.raises(ValueError, match=r"manifest\.json: names 2 actions .* holds action 2"):
        load(store)


# Overwriting


def test_a_dataset_is_overwritten_only_on_demand(store: Path) -> None:
    with pytest.raises(ValueError, match="data: already holds a dataset; pass --overwrite"):
        write(numbered_dataset(3), store)
    with pytest.raises(ValueError, match="data: already holds a dataset; pass --overwrite"):
        Writer(store, 3)
    assert_same(load(store), numbered_dataset(12))
    write(numbered_dataset(3), store, overwrite=True)
    assert_same(load(store), numbered_dataset(3))
    Writer(store, ["left", "stay", "right"], overwrite=True).append([numbered(0)])
    assert_same(load(store), numbered_dataset(1))


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    write(numbered_dataset(2), tmp_path)
    assert_same(load(tmp_path), numbered_dataset(2))


def test_a_dataset_can_replace_itself(store: Path) -> None:
    write(load(store).subsample(0.5), store, overwrite=True)
    assert load(store).num_episodes == 6


def foreign_file(folder: Path) -> None:
    (folder / "thesis.txt").write_text("three years of work")


def foreign_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text('{"format": "something else"}')


def broken_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text("{")


@pytest.mark.parametrize("fill", [foreign_file, foreign_manifest, broken_manifest])
@pytest.mark.parametrize("overwrite", [False, True])
def test_another_folder_is_never_deleted(
    tmp_path: Path, fill: Callable[[Path], None], overwrite: bool
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    fill(folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(ValueError, match="mine: the folder is not empty and holds no dataset"):
        write(numbered_dataset(2), folder, overwrite=overwrite)
    with pytest.raises(ValueError, match="mine: the folder is not empty and holds no dataset"):
        Writer(folder, 3, overwrite=overwrite)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_files_kept_beside_the_columns_are_not_deleted(store: Path) -> None:
    for entry in ("notes.txt", "runs"):
        if entry == "runs":
            (store / entry).mkdir()
        else:
            foreign_file(store)
        with pytest.raises(ValueError, match="not a file of the dataset around it"):
            write(numbered_dataset(2), store, overwrite=True)
        with pytest.raises(ValueError, match="not a file of the dataset around it"):
            Writer(store, 3, overwrite=True)
    assert (store / "thesis.txt").read_text() == "three years of work"
    assert_same(load(store), numbered_dataset(12))


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="file: exists and is not a folder"):
        write(numbered_dataset(1), tmp_path / "file", overwrite=True)
    assert (tmp_path / "file").read_text() == "mine"
    for go in (lambda path: write(numbered_dataset(1), path), lambda path: Writer(path, 3)):
        with pytest.raises((OSError, ValueError)):
            go(tmp_path / "file" / "below" / "data")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError):
            write(numbered_dataset(1), tmp_path / "data")
        assert list(tmp_path.iterdir()) == []
    finally:
        tmp_path.chmod(0o755)


# A full disk


class FullDisk:
    """Lets `left` calls of os.fsync pass and fails the next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = sys.maxsize
        self.fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, handle: int) -> None:
        if self.left == 0:
            self.left = sys.maxsize
            raise OSError(errno.ENOSPC, "No space left on device")
        self.left -= 1
        self.fsync(handle)


@pytest.mark.parametrize("calls", range(FSYNCS_PER_APPEND))
def test_a_full_disk_costs_only_the_last_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    disk = FullDisk(monkeypatch)
    writer = Writer(tmp_path / "data", ["left", "stay", "right"])
    writer.append([numbered(0), numbered(1)])
    disk.left = calls
    with pytest.raises(OSError, match="No space left"):
        writer.append([numbered(8), numbered(4), numbered(3)])
    assert_same(load(tmp_path / "data"), numbered_dataset(2))
    # With space again the same writer goes on, over what the failure left behind.
    writer.append([numbered(2)])
    assert_same(load(tmp_path / "data"), numbered_dataset(3))
    names = {file.name for file in (tmp_path / "data").iterdir()}
    assert names == {MANIFEST, *(f"{name}.bin" for name in COLUMNS)}


@pytest.mark.parametrize("column", COLUMNS)
def test_half_a_column_costs_only_the_last_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    writer = Writer(tmp_path / "data", ["left", "stay", "right"])
    writer.append([numbered(0), numbered(1)])

    def open_almost_full(path: Path, mode: str) -> Any:
        file = open(path, mode)  # noqa: SIM115
        if path.name != f"{column}.bin":
            return file

        class Half:
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: Any) -> None:
                file.close()

            def write(self, data: bytes) -> None:
                file.write(data[: len(data) // 2])
                raise OSError(errno.ENOSPC, "No space left on device")

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

        return Half()

    with monkeypatch.context() as patch:
        patch.setattr(native, "open", open_almost_full, raising=False)
        with pytest.raises(OSError, match="No space left"):
            writer.append([numbered(8), numbered(4), numbered(3)])
    assert_same(load(tmp_path / "data"), numbered_dataset(2))
    writer.append([numbered(2)])
    assert_same(load(tmp_path / "data"), numbered_dataset(3))


@pytest.mark.parametrize("calls", [0, 1, 5, FSYNCS_PER_APPEND + 1])
def test_a_failed_write_leaves_the_old_dataset(
    store: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    FullDisk(monkeypatch).left = calls
    with pytest.raises(OSError, match="No space left"):
        write(numbered_dataset(3), store, overwrite=True)
    assert_same(load(store), numbered_dataset(12))
    assert [entry.name for entry in store.parent.iterdir()] == [store.name]


def test_a_failed_first_append_can_be_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(monkeypatch)
    writer = Writer(tmp_path / "data", 3)
    disk.left = 2
    with pytest.raises(OSError, match="No space left"):
        writer.append([numbered(0)])
    with pytest.raises(ValueError, match="the dataset is empty"):
        load(tmp_path / "data")
    write(numbered_dataset(2), tmp_path / "data", overwrite=True)
    assert_same(load(tmp_path / "data"), numbered_dataset(2))


# A killed writer

RECORDER = """
import sys
import numpy as np
from rbve.data.dataset import NO_ACTION, Episode
from rbve.data.formats.native import Writer

{numbered}

writer = Writer(sys.argv[1], ["left", "stay", "right"])
print("ready", flush=True)
index = 0
while True:
    size = 1 + index % 3
    writer.append([numbered(index + k) for k in range(size)])
    index += size
"""
KILLS = 24


def load_a_prefix(path: Path) -> Dataset | None:
    """What the recorder has written so far, None before its first episode."""
    try:
        found = load(path)
    except ValueError as error:
        if "the dataset is empty" not in str(error):
            raise
        return None
    assert_same(found, numbered_dataset(found.num_episodes))
    return found


def test_a_killed_writer_leaves_every_counted_episode(tmp_path: Path) -> None:
    code = RECORDER.format(numbered=inspect.getsource(numbered))
    delays = np.random.default_rng(0).uniform(0, 0.25, KILLS)
    counts, uncounted = [], 0
    for kill, delay in enumerate(delays):
        path = tmp_path / f"store{kill}"
        recorder = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
        try:
            assert recorder.stdout is not None
            assert recorder.stdout.readline() == b"ready\n"
            time.sleep(delay)
        finally:
            recorder.kill()
            recorder.communicate()
        found = load_a_prefix(path)
        counts.append(found.num_episodes if found else 0)
        if found:
            assert found.provenance == {"finished": False}
            uncounted += (path / "obs.bin").stat().st_size > found.obs.nbytes
    assert len(set(counts)) > 2, f"kills came too early or too late: {counts}"
    assert uncounted > 0, "no kill came between a column and the manifest"


def test_a_store_is_read_while_it_grows(tmp_path: Path) -> None:
    code = RECORDER.format(numbered=inspect.getsource(numbered))
    path = tmp_path / "store"
    recorder = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
    try:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == b"ready\n"
        counts: list[int] = []
        limit = time.monotonic() + 20
        while len(set(counts)) < 10 and time.monotonic() < limit:
            found = load_a_prefix(path)
            counts.append(found.num_episodes if found else 0)
    finally:
        recorder.kill()
        recorder.communicate()
    assert counts == sorted(counts)
    assert len(set(counts)) == 10


def recount(store: Path, column: str, values: np.ndarray) -> None:
    """Other values in a column, with the checksum of someone who knows how."""
    data = values.tobytes()
    (store / f"{column}.bin").write_bytes(data)
    edit(store, lambda manifest: manifest["columns"][column].update(crc32=zlib.crc32(data)))


def test_lengths_that_overflow_are_refused(store: Path) -> None:
    lengths = np.full(12, 2, np.int64)
    rows = json.loads((store / MANIFEST).read_text())["rows"]
    # In 64 bits these add up to the number of rows.
    lengths[:4] = 2**62
    lengths[4] = rows - 2 * 7
    assert int(lengths.sum()) == rows
    recount(store, "length", lengths)
    with pytest.raises(ValueError, match="episode lengths do not add up"):
        load(store)


def test_actions_below_none_are_refused(store: Path) -> None:
    action = np.array(load(store).action)
    action[1] = -7
    recount(store, "action", action)
    with pytest.raises(ValueError, match="the data holds action -7; damaged"):
        load(store)
