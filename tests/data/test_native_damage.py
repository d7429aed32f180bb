"""The native store: damage is named."""

from __future__ import annotations

import json
import shutil
import zlib
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
)

from rbve.data.dataset import OPTIONAL_COLUMNS, Dataset
from rbve.data.formats import load, write
from rbve.data.formats.native import StoreWriter
from rbve.data.manifest import MANIFEST

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
    writer = StoreWriter(tmp_path / "data", 3)
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


PROVENANCE: dict[str, Any] = {
    "env": "catch",
    "behaviour": "online dqn",
    "format": "csv",
    "rewards": "clipped",
    "noise": 0.5,
    "epsilon": None,
    "keep": 1,
    "recorded_episodes": 12,
    "late_return": 1.5,
    "reference": {"online": 1, "random": 0.5, "source": "proxy"},
    "policy": {"job": {"data": {"path": "data"}}, "return": 0.5},
    "agent": {"steps": 100},
    "select": ["some"],
    "their own": [1, {"a": None}],
}
PARTS = [name for name in PROVENANCE if name != "their own"]


@pytest.mark.parametrize("name", [*PARTS, "reference.online", "reference.random", "policy.job"])
def test_malformed_provenance_is_refused(tmp_path: Path, name: str) -> None:
    outer, _, inner = name.partition(".")
    for wrong in WRONG:
        value = {**PROVENANCE[outer], inner: wrong} if inner else wrong
        right = PROVENANCE[outer][inner] if inner else PROVENANCE[outer]
        numbers = all(type(each) in (int, float) for each in (right, wrong)) and wrong == wrong
        if wrong is None or type(wrong) is type(right) or numbers:
            continue
        if name == "epsilon" and type(wrong) in (int, float):
            continue
        provenance = {**PROVENANCE, outer: value}
        data = Dataset.from_episodes([numbered(0)], 3, provenance)
        with pytest.raises(ValueError, match=rf"native: .* {name} must be"):
            write(data, tmp_path / "native")
        write(Dataset.from_episodes([numbered(0)], 3, PROVENANCE), tmp_path / "native")
        edit(
            tmp_path / "native", lambda manifest, made=provenance: manifest.update(provenance=made)
        )
        with pytest.raises(ValueError, match=rf"manifest\.json: .* {name} must be"):
            load(tmp_path / "native")
        with pytest.raises(ValueError, match=rf"data\.npz: .* {name} must be"):
            write(data, tmp_path / "data.npz")
        write(Dataset.from_episodes([numbered(0)], 3, PROVENANCE), tmp_path / "data.npz")
        with np.load(tmp_path / "data.npz") as held:
            columns = dict(held)
        meta = {**json.loads(columns["meta"].tobytes()), "provenance": provenance}
        columns["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
        np.savez(tmp_path / "data.npz", **columns)
        write(data, tmp_path / "data.parquet")
        for file in ("data.npz", "data.parquet"):
            with pytest.raises(ValueError, match=rf"{file}: .* {name} must be"):
                load(tmp_path / file)
            (tmp_path / file).unlink()
        shutil.rmtree(tmp_path / "native")


def test_provenance_is_free_but_for_what_is_used(tmp_path: Path) -> None:
    for name in ("native", "data.npz", "data.parquet"):
        write(Dataset.from_episodes([numbered(0)], 3, PROVENANCE), tmp_path / name)
        assert load(tmp_path / name).provenance.items() >= PROVENANCE.items()
