"""How a process is set up before JAX starts."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rbve import backend
from rbve.spec import Spec
from rbve.sweep.run import run_jobs
from rbve.training.run import POLICY

ARENAS_OF_BUSY_THREADS = """
import ctypes, sys, threading
from rbve import backend

libc = ctypes.CDLL(None)
backend._limit_arenas()
together = threading.Barrier(16)

def allocate():
    together.wait()
    for _ in range(200):
        libc.malloc(1000)
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc.fopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, out)
libc.fclose(out)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")
def test_threads_share_two_pools_of_memory(tmp_path):
    # Without the limit sixteen threads take one each, up to eight a core.
    assert arenas(tmp_path) == 2


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")
def test_pools_that_somebody_has_chosen_stay(tmp_path):
    assert arenas(tmp_path, MALLOC_ARENA_MAX="1") == 1


def arenas(tmp_path, **environment):
    said = tmp_path / "malloc.xml"
    command = [sys.executable, "-c", ARENAS_OF_BUSY_THREADS, said]
    subprocess.run(command, check=True, env=os.environ | environment)
    return said.read_text().count("<heap nr=")


def python(code: str, *arguments: object, kept: tuple[str, ...] = ()) -> str:
    """What a fresh process prints, one that no test has set up but for what is kept."""
    ours = {"JAX_COMPILATION_CACHE_DIR", "PJRT_NPROC", "XLA_FLAGS", backend.MIN_COMPILE_TIME}
    ours -= {*kept}
    env = {name: value for name, value in os.environ.items() if name not in ours}
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


READS_DATA = """
import sys, rbve
data = rbve.load(sys.argv[1])
rbve.Dataset, rbve.Episode
print(data.subsample(0.5).num_episodes, "jax" in sys.modules)
"""


def test_reading_data_does_not_import_jax(catch_path: Path) -> None:
    assert python(READS_DATA, catch_path) == "30 False\n"


DECIDES = """
import os, sys
variables = dict(os.environ)
import jax
before = dict(jax.config.values)
import rbve, rbve.api, rbve.cli
policy = rbve.Policy.load(sys.argv[1])
print(policy.decide(rbve.load(sys.argv[2]).obs[0]) in policy.actions)
changed = [name for name, value in jax.config.values.items() if before.get(name) != value]
print(changed, dict(os.environ) == variables)
"""


def test_a_policy_in_ones_own_process_changes_no_setting(
    small_job: Callable[..., Spec], catch_path: Path, tmp_path: Path
) -> None:
    (folder,) = run_jobs([small_job("bve", {"steps": 10, "env": None})], tmp_path)
    assert python(DECIDES, folder / POLICY, catch_path) == "True\n[] True\n"


TRAINS = """
import sys, warnings
import jax
if sys.argv[2] == "late":
    jax.numpy.zeros(3)
import rbve
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        small = {"eval_episodes": 1, "hidden": (4,), "batch_size": 4}
        policy = rbve.train(sys.argv[1], "bve", steps=10, spec=small)
notes = [str(each.message) for each in caught if "JAX was at work" in str(each.message)]
print(len(notes), jax.local_device_count())
print(*notes)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is always used whole")
def test_work_uses_all_cores_or_says_why_not(catch_path: Path) -> None:
    cores = len(os.sched_getaffinity(0))
    quick = ("XLA_FLAGS", backend.MIN_COMPILE_TIME)  # to compile
    assert python(TRAINS, catch_path, "early", kept=quick) == f"0 {cores}\n\n"
    counts, note = python(TRAINS, catch_path, "late", kept=quick).splitlines()
    assert counts == "1 1"
    assert f"has 1 device on {cores} cores" in note
    assert "before the first JAX operation of the program, call rbve.backend.prepare()" in note


def test_a_number_of_devices_that_somebody_has_chosen_stays() -> None:
    code = """
import jax
jax.config.update("jax_num_cpu_devices", 1)
from rbve import backend
backend.prepare()
print(jax.local_device_count())
"""
    assert python(code) == "1\n"


def test_a_user_without_a_home_goes_on_without_a_cache(tmp_path, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert backend.cache_folder() is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert backend.cache_folder() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert backend.cache_folder() == tmp_path / "cache" / "rbve"


def test_jax_is_set_up_without_a_cache():
    code = (
        "from pathlib import Path; from rbve import backend; backend.cache_folder = lambda: None; "
        "backend.prepare(); import jax; print(jax.config.jax_compilation_cache_dir)"
    )
    env = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr


def test_the_cache_drops_what_was_used_longest_ago(tmp_path):
    for age, name in enumerate(("new", "middle", "old", "oldest")):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (1_000_000 - age, 1_000_000 - age))
    os.utime(tmp_path / "oldest", (2_000_000, 1))  # compiled first, read last

    def kept() -> set[str]:
        return {file.name for file in tmp_path.iterdir()}

    backend._prune(tmp_path, 400)
    assert kept() == {"new", "middle", "old", "oldest"}
    backend._prune(tmp_path, 399)  # to three quarters: 299
    assert kept() == {"new", "oldest"}
    backend._prune(tmp_path / "missing", 1)


def test_preparing_limits_the_cache(tmp_path):
    folder = tmp_path / "rbve" / "xla"
    folder.mkdir(parents=True)
    (folder / "program-cache").write_bytes(bytes(100))
    code = "from rbve import backend; backend._CACHE_BYTES = 99; backend.prepare()"
    own = {"XDG_CACHE_HOME": str(tmp_path)}
    env = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"} | own
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    assert not list(folder.iterdir())
