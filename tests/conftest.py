"""What tests share: JAX set up as the programs set it up, a small dataset, small jobs."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.browser import Tab

from rbve import backend

# Tests make the same small programs again and again, here and in processes they start.
os.environ.setdefault(backend.MIN_COMPILE_TIME, "0.05")
# Most of their time is compilation, and this takes much of it away.
QUICK_TO_COMPILE = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)
os.environ.setdefault("XLA_FLAGS", " ".join(QUICK_TO_COMPILE))
# Stores and runs of tests are synced to disk thousands of times; a disk in memory does not wait.
MEMORY_DISK, DISK_BYTES = Path("/dev/shm"), 4 << 30


def has_memory_disk() -> bool:
    """Whether there is one with room, on which programs may be run."""
    with suppress(OSError, AttributeError):
        disk = os.statvfs(MEMORY_DISK)
        free = disk.f_bavail * disk.f_frsize
        allowed = os.access(MEMORY_DISK, os.W_OK | os.X_OK) and not disk.f_flag & os.ST_NOEXEC
        return allowed and free >= DISK_BYTES
    return False


if has_memory_disk():
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))
# A worker has one core: more threads in products of matrices wait for each other, at full speed.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
backend.prepare(least=2)

import jax  # noqa: E402
from support.recordings import record_policy  # noqa: E402

from rbve.data import Dataset, load  # noqa: E402
from rbve.spec import Spec  # noqa: E402

# Resident bytes from which on a worker forgets its compiled programs, which JAX keeps for ever.
MOST_MEMORY, GROWTH = 900 << 20, 300 << 20
memory_kept = 0  # resident bytes after the last time
# Samples and heads that keep the larger networks quick to compile and run.
SMALL: dict[str, dict[str, Any]] = {
    "iqn": {"samples": 4, "act_samples": 4},
    "rem": {"heads": 5},
    "qr_cql": {"quantiles": 4},
}


def pytest_collection_finish() -> None:
    """Spare the garbage collector what lives to the end: modules, and the tests themselves."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown() -> None:
    """Forget compiled programs once this process has grown by a good deal since the last time."""
    global memory_kept
    if sys.platform != "linux" or resident_bytes() < max(MOST_MEMORY, memory_kept + GROWTH):
        return
    jax.clear_caches()
    gc.collect()
    with suppress(OSError, AttributeError):  # a C library that keeps its memory
        ctypes.CDLL(None).malloc_trim(0)
    memory_kept = resident_bytes()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """What this process used, for the line that the controller of all workers prints."""
    used = os.times()
    seconds = used.user + used.system + used.children_user + used.children_system
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["used"] = seconds, peak


WORKERS: list[tuple[str, float, int]] = []  # name, CPU seconds, peak of resident KiB


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    seconds, peak = getattr(node, "workeroutput", {}).get("used", (0.0, 0))
    WORKERS.append((node.gateway.id, seconds, peak))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for name, seconds, peak in sorted(WORKERS):
        terminalreporter.write_line(
            f"{name}: {seconds / 60:.1f} CPU minutes, at most {peak / 2**20:.2f} GiB"
        )


@pytest.fixture(scope="session")
def catch_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 60 uniform episodes of catch."""
    path = tmp_path_factory.mktemp("stores") / "catch"
    record_policy("catch", path, None, episodes=60)
    return path


@pytest.fixture(scope="session")
def catch(catch_path: Path) -> Dataset:
    return load(catch_path)


@pytest.fixture(scope="session")
def small_job(catch_path: Path) -> Callable[..., Spec]:
    """Makes a quick job on that store: small_job("iqn", {"steps": 30}, {"kappa": 2}, seed=1)."""

    def make(
        algorithm: str,
        plan: dict[str, Any] | None = None,
        settings: dict[str, Any] | None = None,
        **numbers: Any,
    ) -> Spec:
        wanted = {
            "steps": 300,
            "every": 70,
            "env": "catch",
            "eval_episodes": 4,
            "batch_size": 16,
            "hidden": (8,),
        }
        wanted |= plan or {}
        own = SMALL.get(algorithm, {}) | (settings or {})
        numbers = {"target_period": 45, **numbers}
        return Spec.of(path=catch_path, algorithm=algorithm, **wanted, **own, **numbers).resolved()

    return make


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A browser for the tests of a file, started once."""
    tab = Tab(tmp_path_factory.mktemp("profile"))
    yield tab
    tab.close()


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that appears when the module `marked` is imported."""
    (tmp_path / "marked.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "marked", raising=False)
    return tmp_path / "imported"
