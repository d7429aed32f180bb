"""The native store: what goes in comes out, and nothing is overwritten by accident."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.stores import (
    COLUMNS,
    assert_same,
    edit,
    numbered,
    numbered_dataset,
    plain,
)

from rbve import files
from rbve.data.dataset import NO_ACTION, Dataset, Episode
from rbve.data.formats import load, native, write
from rbve.data.formats.native import StoreWriter
from rbve.data.manifest import MANIFEST, fingerprint
from rbve.data.source import Source

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


@pytest.mark.parametrize("exchanged", [True, False])
def test_the_old_store_stands_until_the_new_one_does(
    store: Path, monkeypatch: pytest.MonkeyPatch, exchanged: bool
) -> None:
    removed: list[Path] = []
    remove = files.remove

    def watched(path: Path) -> None:
        removed.extend(manifest.parent for manifest in path.rglob(MANIFEST))
        assert load(store).num_episodes == 3
        remove(path)

    monkeypatch.setattr(files, "remove", watched)
    if not exchanged:
        monkeypatch.setattr(files, "exchange", lambda one, other: False)
    write(numbered_dataset(3), store, overwrite=True)
    assert load(store).num_episodes == 3
    assert len(removed) == 1, "the old store goes when the new one stands"
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
    writer = StoreWriter(tmp_path / "appended", ["left", "stay", "right"])
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
    writer = StoreWriter(tmp_path / "data", 3)
    writer.append([numbered(0)])
    bad = numbered(2)._replace(action=np.array([0, 3, 1, NO_ACTION]))
    with pytest.raises(ValueError, match=r"data: episode 2, step 1: action 3 is not one"):
        writer.append([numbered(1), bad])
    with pytest.raises(ValueError, match=r"data: episode 1: observations have shape \(3,\)"):
        writer.append([numbered(1)._replace(obs=np.zeros((3, 3), np.uint8))])
    writer.append([numbered(1)])
    assert load(tmp_path / "data").num_episodes == 2


def test_columns_come_with_every_episode_or_none(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "data", 3)
    with pytest.raises(ValueError, match="data: episode 1 lacks 'legal'"):
        writer.append([numbered(0), numbered(1)._replace(legal=None)])
    writer.append([numbered(0)])
    with pytest.raises(ValueError, match="data: episodes from 1 on have the columns"):
        writer.append([plain(1)])
    assert load(tmp_path / "data").num_episodes == 1


def test_observations_are_not_squeezed_into_a_smaller_dtype(tmp_path: Path) -> None:
    writer = StoreWriter(tmp_path / "data", 3)
    writer.append([numbered(0)])
    wide = numbered(1)._replace(obs=np.full((3, 2, 3), 0.5))
    with pytest.raises(ValueError, match=r"episodes from 1 on have observations of float64.*\|u1"):
        writer.append([wide])
    with pytest.raises(ValueError, match="cannot hold"):
        StoreWriter(tmp_path / "long", 3).append(
            [wide._replace(obs=wide.obs.astype(np.longdouble))]
        )


def test_observations_beyond_32_bits_are_named(tmp_path: Path) -> None:
    """Networks compute in 32 bits, where they are infinite."""
    obs = np.zeros((3, 2))
    obs[1, 1] = -1e300
    episode = Episode.from_steps(obs, [0, 1], [1, 2], True)
    with pytest.raises(ValueError, match=r"step 1: .* in 32 bits \(-1e\+300\) in column 1; repair"):
        Dataset.from_episodes([episode], 2)
    obs[1, 1] = 3.4e38
    write(Dataset.from_episodes([episode], 2), tmp_path / "data")


# Overwriting


def test_a_dataset_is_overwritten_only_on_demand(store: Path) -> None:
    with pytest.raises(ValueError, match="data: already holds a dataset; pass --overwrite"):
        write(numbered_dataset(3), store)
    with pytest.raises(ValueError, match="data: already holds a dataset; pass --overwrite"):
        StoreWriter(store, 3)
    assert_same(load(store), numbered_dataset(12))
    write(numbered_dataset(3), store, overwrite=True)
    assert_same(load(store), numbered_dataset(3))
    StoreWriter(store, ["left", "stay", "right"], overwrite=True).append([numbered(0)])
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
        StoreWriter(folder, 3, overwrite=overwrite)
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
            StoreWriter(store, 3, overwrite=True)
    assert (store / "thesis.txt").read_text() == "three years of work"
    assert_same(load(store), numbered_dataset(12))


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="file: exists and is not a folder"):
        write(numbered_dataset(1), tmp_path / "file", overwrite=True)
    assert (tmp_path / "file").read_text() == "mine"
    for go in (lambda path: write(numbered_dataset(1), path), lambda path: StoreWriter(path, 3)):
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


# What the data is known by


def test_a_fingerprint_covers_what_training_sees(store: Path) -> None:
    original = (store / MANIFEST).read_text()
    first = fingerprint(store)
    assert len(first) == 16

    def changed(change: Callable[[dict[str, Any]], None]) -> bool:
        edit(store, change)
        other = fingerprint(store)
        (store / MANIFEST).write_text(original)
        return other != first

    def feature(scale: float) -> list[dict[str, Any]]:
        return [{"name": "x", "kind": "number", "mean": 0.0, "scale": scale}]

    assert changed(lambda m: m.update(actions=["left", "stay", "up"]))
    assert changed(lambda m: m.update(actions=["right", "stay", "left"]))
    assert changed(lambda m: m.update(features=feature(1.0)))
    assert changed(lambda m: m["columns"]["obs"].update(dtype="|i1"))
    assert changed(lambda m: m["columns"]["obs"].update(shape=[3, 2]))
    assert changed(lambda m: m["columns"]["obs"].update(crc32=1))
    assert changed(lambda m: m["columns"]["obs"].update(count=1))
    assert changed(lambda m: m["columns"].pop("legal"))
    assert not changed(lambda m: m.update(finished=False, provenance={"source": "elsewhere.csv"}))
    assert not changed(lambda m: m.update(columns=dict(reversed(m["columns"].items()))))
    edit(store, lambda m: m.update(features=feature(1.0)))
    unscaled = fingerprint(store)
    edit(store, lambda m: m.update(features=feature(2.0)))
    assert fingerprint(store) != unscaled
