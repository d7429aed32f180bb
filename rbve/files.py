"""Files that are either whole or absent, whatever happens to the process."""

from __future__ import annotations

import errno
import fcntl
import glob
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

UNSUPPORTED = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)  # of filesystems that cannot lock


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the target, then rename onto it: readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, content: Any) -> None:
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not valid JSON ({error}); the file is damaged") from None


def refuse_to_overwrite(path: Path, overwrite: bool) -> None:
    """Of a file that is about to be written."""
    if path.is_dir():
        raise ValueError(f"{path}: exists and is a folder; choose another path")
    if path.exists() and not overwrite:
        raise ValueError(f"{path}: already exists; pass --overwrite or choose another")


def refuse_to_replace(
    folder: Path,
    overwrite: bool,
    holds_dataset: Callable[[Path], bool],
    strangers: Callable[[Path], Iterator[Path]],
) -> None:
    """Only a folder with the files of a dataset and nothing else may be replaced."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"{folder}: exists and is not a folder; choose another path")
    if not any(folder.iterdir()):
        return
    if not holds_dataset(folder):
        raise ValueError(f"{folder}: the folder is not empty and holds no dataset; choose another")
    if not overwrite:
        raise ValueError(f"{folder}: already holds a dataset; pass --overwrite or choose another")
    for entry in strangers(folder):
        raise ValueError(f"{entry}: not a file of the dataset around it; move it away first")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep others from writing `path`, a file or folder, which need not exist.

    Whoever comes second, in this process or another, is refused with a ValueError. The lock lies
    on a hidden file beside the path and ends with the process, however that ends.
    """
    target = followed(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    file = target.with_name(f".{target.name}.lock")
    handle = lock_handle(file, path)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)  # still locked, so no other process has taken it over
        os.close(handle)


def lock_handle(file: Path, path: Path) -> int:
    while True:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise ValueError(
                f"{path}: is being written by another process; wait for it, end it, or choose "
                "another path"
            ) from None
        except OSError as error:
            if error.errno in UNSUPPORTED:
                return handle
            os.close(handle)
            raise
        # Whoever held the lock before has deleted the file it was on: take that of the new one.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), file.stat()):
                return handle
        os.close(handle)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside the target to write a file or folder to; it becomes the target at the end.

    What processes that were killed left behind is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        owner = left.name.rsplit(".", 2)[1]
        if owner.isdigit() and not is_running(int(owner)):
            remove(left)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    remove(partial)
    try:
        yield partial
        # A folder cannot be replaced in one step: the old one is kept until the new one stands.
        old = path.with_name(f".{path.name}.{os.getpid()}.old")
        if partial.is_dir() and path.exists():
            os.replace(path, old)
        os.replace(partial, path)
        remove(old)
    finally:
        remove(partial)


def followed(path: Path) -> Path:
    """Where a path leads, through symbolic links."""
    return Path(os.path.realpath(path))


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
