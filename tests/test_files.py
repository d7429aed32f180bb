"""Files and folders: one writer at a time, whole or absent, and as private as they were."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rbve.files import locked

HOLDER = """
import sys, time
from pathlib import Path
from rbve.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "data")
    with locked(tmp_path / "data"):
        for path in (tmp_path / "data", link):
            with pytest.raises(ValueError, match="is being written by another"), locked(path):
                pass
        with locked(tmp_path / "other"):
            pass
    with locked(tmp_path / "data"):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["link"]


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ValueError, match="deep/data: is being written"), locked(path):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(path):
        pass
    assert list(path.parent.iterdir()) == []


def test_a_lock_file_deleted_by_its_holder_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the file and locking it, whoever held it may end and another begin."""
    flock = fcntl.flock
    handles = []

    def late(handle: int, operation: int) -> None:
        handles.append(handle)
        if len(handles) == 1:
            (tmp_path / ".data.lock").unlink()
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with locked(tmp_path / "data"):
        assert len(handles) == 2
        assert (tmp_path / ".data.lock").exists()


def test_filesystems_without_locks_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(number: int) -> Any:
        def flock(handle: int, operation: int) -> None:
            raise OSError(number, "flock")

        return flock

    monkeypatch.setattr(fcntl, "flock", failing(errno.ENOLCK))
    with locked(tmp_path / "data"):
        pass
    monkeypatch.setattr(fcntl, "flock", failing(errno.EIO))
    with pytest.raises(OSError, match="flock"), locked(tmp_path / "data"):
        pass
