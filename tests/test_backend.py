"""How a process is set up before JAX starts."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from rbve import backend

ARENAS_OF_BUSY_THREADS = """
import ctypes, sys, threading
from rbve import backend

libc = ctypes.CDLL(None)
backend.limit_arenas()
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
