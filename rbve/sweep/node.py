"""What a node of a cluster does for a driver elsewhere: look whether it can help, run bundles.

It takes bundles from the driver's folder alone and imports nothing that they name but algorithms by
their files, whose hashes the jobs hold. Results are files in that folder.
"""

import fcntl
import functools
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from rbve.sweep import child, copies

SHARED_MEMORY = Path("/dev/shm")
_PACKAGES = ("ray", "jax", "jaxlib", "numpy")
_SECONDS = 0.5  # between two looks at the process


class Needs(NamedTuple):
    """What every node must have."""

    versions: Mapping[str, str]
    folder: str  # of bundles, below the driver's `out`
    token: str  # a file in it, so that a folder of the same name elsewhere is told apart
    stores: Mapping[str, str]  # path -> mark (rbve/sweep/copies.py)
    shared_memory: int  # bytes that Ray keeps there


class Look(NamedTuple):
    """What a node found."""

    host: str
    cores: int
    wrong: str = ""  # it cannot help, and what to do
    note: str = ""
    missing: tuple[str, ...] = ()  # paths of stores


class Ended(NamedTuple):
    """How a task ended; its results are files."""

    look: Look
    place: str  # id of the node
    code: int = -1  # exit code of the process, if it was begun
    last: str = ""  # what it printed last


def versions() -> dict[str, str]:
    own = {"python": platform.python_version(), "rbve": f"{metadata.version('rbve')} {_source()}"}
    return own | {name: metadata.version(name) for name in _PACKAGES}


@functools.cache
def _source() -> str:
    """Hash of the package's code: a checkout changes without its version."""
    spec = importlib.util.find_spec("rbve")
    root = Path(spec.origin or "").parent if spec else Path()
    content = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        content.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return content.hexdigest()[:8]


def look(needs: Needs) -> Look:
    here = Look(platform.node(), len(os.sched_getaffinity(0)))
    own = versions()
    for name, version in needs.versions.items():
        if own[name] != version:
            return here._replace(
                wrong=f"has {name} {own[name]}, and the command runs {name} {version}; install the "
                "same on all nodes"
            )
    if not (Path(needs.folder) / needs.token).is_file():
        return here._replace(
            wrong=f"does not see {needs.folder}; give --out on a file system that all nodes share"
        )
    found = {path: copies.located(path, mark) for path, mark in needs.stores.items()}
    missing = tuple(path for path, place in found.items() if place is None)
    return here._replace(note=_shared_memory(needs.shared_memory), missing=missing)


def _shared_memory(needed: int) -> str:
    with suppress(OSError):
        held = shutil.disk_usage(SHARED_MEMORY).total
        if held < needed:
            return (
                f"{SHARED_MEMORY} has {held >> 20} MB, less than the {needed >> 20} MB of Ray's "
                f"object store there; start the container with --shm-size={max(1, needed >> 29)}g"
            )
    return ""


def run(
    needs: Needs, file: str, out: str, settings: Mapping[str, str], cwd: str, cores: int
) -> Ended:
    """Run one bundle in a process of its own, on cores that no other such process of this node
    uses, with one thread each; interrupted, it saves."""
    import ray

    found, place = look(needs), ray.get_runtime_context().get_node_id()
    if found.wrong or found.missing:
        return Ended(found, place)
    bundle = Path(file)
    child.note(bundle, node=place)
    folder = Path(cwd) if os.path.isdir(cwd) else Path(out)
    with own_cores(cores) as chosen:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, chosen or before)  # of this thread; the process inherits it
        try:
            process = child.start(bundle, Path(out), settings, folder)
        finally:
            os.sched_setaffinity(0, before)
        try:
            while (code := process.poll()) is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_SECONDS)
        finally:  # cancelled
            process.terminate()
            process.communicate()
    return Ended(found, place, code, child.last_line(bundle))


@contextmanager
def own_cores(count: int) -> Iterator[set[int]]:
    """So many cores that no other process holds so; none where too few are free."""
    folder = Path(tempfile.gettempdir()) / f"rbve-cores-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    held: dict[int, Any] = {}
    # Everybody may write beside it: in another user's folder a name may lead to a file of ours.
    own = folder.lstat().st_uid == os.getuid()
    try:
        for core in sorted(os.sched_getaffinity(0)) if own else ():
            if len(held) < count:
                file = open(folder / str(core), "wb")  # noqa: SIM115
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    held[core] = file
                except OSError:
                    file.close()
        yield set(held) if len(held) == count else set()
    finally:
        for file in held.values():
            file.close()
