"""Files that are either whole or absent, whatever happens to the process."""

import ctypes
import errno
import fcntl
import json
import os
import re
import resource
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Of filesystems that cannot lock, exchange names or sync folders: work goes on without.
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.ENOLCK)
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
SETTLED = 10.0  # seconds after which a file that was just made is surely locked
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of renameat2(2)


class InUse(ValueError):
    """Another process writes it."""


def write_atomically(path: Path, content: bytes) -> None:
    """Write beside the target, then rename onto it: readers see the old file or the new one.

    A file that is replaced keeps its permissions; a new one has those the umask gives. A symbolic
    link is followed. Temporary files of processes that were killed are removed.
    """
    path = followed(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in filter(_abandoned, _left_over(path, "tmp")):
        left.unlink(missing_ok=True)
    temporary = hidden(path, "tmp")
    try:
        with open(temporary, "xb") as file:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # in use, see abandoned()
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_json(path: Path, content: Any) -> None:
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def append_json(path: Path, content: Any) -> None:
    """A line more in a file that grows."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(content) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not valid JSON ({error}); the file is damaged") from None


def refuse_to_overwrite(path: Path, overwrite: bool) -> None:
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
    on a hidden file beside the path, or on a folder itself where nothing may be written beside it,
    such as a home or a mounted volume. It ends with the process, however that ends. What killed
    processes left beside the path is put back or removed.
    """
    target = followed(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    file = target.with_name(f".{target.name}.lock")
    try:
        handle, beside = _lock_handle(file, path, os.O_RDWR | os.O_CREAT), True
    except OSError as error:
        if error.errno not in _NOT_WRITABLE or not target.is_dir():
            raise
        handle, beside = _lock_handle(target, path, os.O_RDONLY), False
    try:
        if not target.exists() and (aside := _left_over(target, "old")):
            os.replace(aside[0], target)
        for left in _left_over(target, "partial|old"):
            remove(left)
        yield
    finally:
        if beside:
            file.unlink(missing_ok=True)  # still locked, so no other process has taken it over
        os.close(handle)


def allow_open_files(count: int) -> None:
    """Before so many locks are taken: each holds a file, and many systems allow only 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + 512
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _lock_handle(file: Path, path: Path, flags: int) -> int:
    while True:
        handle = os.open(file, flags, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise InUse(
                f"{path}: is being written by another process; wait for it, end it, or choose "
                "another path"
            ) from None
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                return handle
            os.close(handle)
            raise
        # Whoever held the lock before has deleted the file it was on: take that of the new one.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), file.stat()):
                return handle
        os.close(handle)


@contextmanager
def replacing(path: Path, check: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """A path to write a file or folder to; it becomes the target at the end, in one step.

    The target is locked meanwhile, and `check` refuses what may not be replaced. While it is
    written nobody else can read it; then it has the permissions of what it replaces, or those the
    umask gives. A symbolic link is followed.
    """
    target = followed(path)
    with locked(path):
        check()
        scratch = hidden(target, "partial")
        scratch.mkdir(mode=0o700)
        try:
            partial = scratch / target.name
            yield partial
            check()
            _put(partial, target)
        finally:
            remove(scratch)


def _put(partial: Path, target: Path) -> None:
    """Move onto the target, whose old content, if a folder, is then at `partial` or gone."""
    if target.exists():
        shutil.copymode(target, partial)
    if partial.is_dir() and target.exists() and not exchange(partial, target):
        old = hidden(target, "old")
        os.replace(target, old)  # where a kill comes here, locked() mends it
        os.replace(partial, target)
        remove(old)
    elif not partial.is_dir() or not target.exists():
        os.replace(partial, target)
    _sync_folder(target.parent)


def exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step; False where that cannot be done."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # not Linux, or an old C library
        return False
    names = os.fsencode(one), os.fsencode(other)
    if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return True
    error = ctypes.get_errno()
    if error in _UNSUPPORTED:
        return False
    raise OSError(error, os.strerror(error), str(other))


def restore(path: Path) -> None:
    """Before reading: put back a folder that a killed process had moved aside to replace it."""
    target = followed(path)
    if not target.exists() and _left_over(target, "old"):
        with suppress(ValueError, OSError), locked(path):
            pass


def hidden(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{kind}")


def _left_over(path: Path, kinds: str) -> list[Path]:
    """What lies beside `path` under names that hidden() gives."""
    if not path.parent.is_dir():
        return []
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]+\.({kinds})")
    return [path.with_name(name) for name in os.listdir(path.parent) if pattern.fullmatch(name)]


def _abandoned(temporary: Path) -> bool:
    """Whether the process that wrote it has ended."""
    with suppress(OSError), open(temporary, "rb") as file:
        if time.time() - os.fstat(file.fileno()).st_mtime > SETTLED:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


def followed(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder outlast a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def commit_of(git: Path) -> str:
    """What is checked out, read as git keeps it: limits on open files may allow no process."""
    with suppress(OSError, UnicodeError):
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        if (git / name).is_file():
            return (git / name).read_text().strip()
        packed = (git / "packed-refs").read_text().splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
    return ""
