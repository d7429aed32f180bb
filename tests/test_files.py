"""Files and folders: one writer at a time, whole or absent, and as private as they were."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rbve import files
from rbve.files import locked, replacing, restore, write_atomically


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Locks

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


@pytest.mark.parametrize("reason", [errno.EACCES, errno.EROFS])
def test_a_folder_is_locked_where_nothing_may_stand_beside_it(
    reason: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = os.open

    def open_below(path: Any, flags: int, *more: Any) -> int:
        if flags & os.O_CREAT and Path(path).parent == tmp_path:
            raise OSError(reason, os.strerror(reason), str(path))
        return usual(path, flags, *more)

    monkeypatch.setattr(os, "open", open_below)
    volume = tmp_path / "volume"
    volume.mkdir()
    for _ in range(2):
        with locked(volume):
            with pytest.raises(ValueError, match="is being written by another"), locked(volume):
                pass
            with locked(volume / "run"):
                pass
    assert [entry.name for entry in tmp_path.rglob("*")] == ["volume"]
    with pytest.raises(OSError, match=os.strerror(reason)), locked(tmp_path / "new"):
        pass


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


# Single files


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o027])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "new", b"private")
        with replacing(tmp_path / "whole") as partial:
            partial.write_bytes(b"private")
        with replacing(tmp_path / "folder") as partial:
            partial.mkdir()
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == mode(tmp_path / "whole") == 0o666 & ~umask
    assert mode(tmp_path / "folder") == 0o777 & ~umask


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o664])
def test_what_is_replaced_keeps_its_permissions(tmp_path: Path, kept: int) -> None:
    file, whole, folder = tmp_path / "file", tmp_path / "whole", tmp_path / "folder"
    file.write_text("old")
    whole.write_text("old")
    folder.mkdir()
    for path in (file, whole, folder):
        path.chmod(kept | 0o100 * path.is_dir())
    write_atomically(file, b"new")
    with replacing(whole) as partial:
        partial.write_bytes(b"new")
        assert mode(partial.parent) == 0o700, "nobody reads it before it is whole"
    with replacing(folder) as partial:
        partial.mkdir()
    assert (mode(file), mode(whole), mode(folder)) == (kept, kept, kept | 0o100)


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    for name in ("file", "whole", "folder"):
        (tmp_path / name).symlink_to(tmp_path / "disk" / name)
    for content in ("first", "second"):
        write_atomically(tmp_path / "file", content.encode())
        with replacing(tmp_path / "whole") as partial:
            partial.write_text(content)
        with replacing(tmp_path / "folder") as partial:
            partial.mkdir()
            (partial / "inside").write_text(content)
        assert all((tmp_path / name).is_symlink() for name in ("file", "whole", "folder"))
        for name in ("file", "whole", "folder/inside"):
            assert (tmp_path / "disk" / name).read_text() == content
    assert len(list((tmp_path / "disk").iterdir())) == 3


WRITER = """
import os, signal, sys
from pathlib import Path
from rbve.files import write_atomically
def killed(handle):
    os.kill(os.getpid(), signal.SIGKILL)
os.fsync = killed
write_atomically(Path(sys.argv[1]), b"new")
"""


def test_temporary_files_of_killed_processes_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.json"
    assert subprocess.run([sys.executable, "-c", WRITER, path]).returncode == -9
    (left,) = tmp_path.iterdir()
    strangers = [tmp_path / name for name in (".file.json.backup", ".file.json.ab.tmp.txt")]
    for stranger in strangers:
        stranger.write_text("mine")
    write_atomically(path, b"too fresh to tell whether its process ended")
    assert left.exists()
    monkeypatch.setattr(files, "SETTLED", -1.0)
    with open(left, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write_atomically(path, b"in use")
        assert left.exists()
    write_atomically(path, b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([path, *strangers])


def test_names_are_synced_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: (synced.append(os.readlink(f"/proc/self/fd/{handle}")), fsync(handle)),
    )
    write_atomically(tmp_path / "file", b"x")
    assert synced[-1] == str(tmp_path)
    with replacing(tmp_path / "folder") as partial:
        partial.mkdir()
        synced.clear()
    assert synced == [str(tmp_path)]


# Folders

REPLACER = """
import os, signal, sys
from pathlib import Path
from rbve import files
files.exchange = lambda one, other: False
replace = os.replace
def killed(source, target):
    replace(source, target)
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = killed
with files.replacing(Path(sys.argv[1])) as partial:
    partial.mkdir()
    (partial / "new").touch()
"""


@pytest.mark.parametrize("reading", [True, False])
def test_a_folder_moved_aside_by_a_killed_process_comes_back(tmp_path: Path, reading: bool) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").touch()
    assert subprocess.run([sys.executable, "-c", REPLACER, path]).returncode == -9
    assert not path.exists()
    if reading:
        restore(path)
        assert (path / "old").exists()
    with replacing(path) as partial:
        assert (path / "old").exists()
        partial.mkdir()
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]
    assert list(path.iterdir()) == []


def test_folders_change_places_in_one_step(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for path in (one, other):
        path.mkdir()
        (path / path.name).touch()
    assert files.exchange(one, other)
    assert (other / "one").exists()
    assert (one / "other").exists()
    with pytest.raises(FileNotFoundError):
        files.exchange(one, tmp_path / "nowhere")


def test_what_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "folder"

    def check() -> None:
        if path.exists():
            raise ValueError("already there")

    def write() -> None:
        with replacing(path, check) as partial:
            partial.mkdir()
            path.mkdir()
            (path / "theirs").touch()

    with pytest.raises(ValueError, match="already there"):
        write()
    assert [entry.name for entry in path.iterdir()] == ["theirs"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_targets_of_similar_names_leave_each_other_alone(tmp_path: Path) -> None:
    with replacing(tmp_path / "data.npz") as outer:
        outer.write_bytes(b"x")
        with replacing(tmp_path / "data") as inner:
            inner.mkdir()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data", "data.npz"]
