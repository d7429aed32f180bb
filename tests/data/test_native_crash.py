"""The native store: a crash costs only the last append."""

from __future__ import annotations

import errno
import inspect
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.stores import (
    COLUMNS,
    FSYNCS_PER_APPEND,
    assert_same,
    numbered,
    numbered_dataset,
)

from rbve.data.dataset import Dataset
from rbve.data.formats import load, native, write
from rbve.data.formats.native import StoreWriter
from rbve.data.manifest import MANIFEST

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
    writer = StoreWriter(tmp_path / "data", ["left", "stay", "right"])
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
    writer = StoreWriter(tmp_path / "data", ["left", "stay", "right"])
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
    writer = StoreWriter(tmp_path / "data", 3)
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
from rbve.data.formats.native import StoreWriter

{numbered}

writer = StoreWriter(sys.argv[1], ["left", "stay", "right"])
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


CONVERTER = """
import sys
from pathlib import Path
import numpy as np
from rbve import files
from rbve.data.dataset import NO_ACTION, Dataset, Episode
from rbve.data.formats import write

{numbered}

if sys.argv[2] == "moved":
    files.exchange = lambda one, other: False
print("ready", flush=True)
while True:
    for count in (3, 12):
        episodes = map(numbered, range(count))
        data = Dataset.from_episodes(episodes, ["left", "stay", "right"])
        write(data, Path(sys.argv[1]), overwrite=True)
"""


@pytest.mark.parametrize("how", ["exchanged", "moved"])
def test_a_killed_converter_leaves_the_old_data_or_the_new(store: Path, how: str) -> None:
    code = CONVERTER.format(numbered=inspect.getsource(numbered))
    for delay in np.random.default_rng(1).uniform(0.02, 0.2, KILLS // 4):
        converter = subprocess.Popen(
            [sys.executable, "-c", code, store, how], stdout=subprocess.PIPE
        )
        try:
            assert converter.stdout is not None
            assert converter.stdout.readline() == b"ready\n"
            time.sleep(delay)
        finally:
            converter.kill()
            converter.communicate()
        data = load(store)
        assert data.num_episodes in (3, 12)
        assert_same(data, numbered_dataset(data.num_episodes))
    write(numbered_dataset(5), store, overwrite=True)
    assert [entry.name for entry in store.parent.iterdir()] == [store.name]


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
