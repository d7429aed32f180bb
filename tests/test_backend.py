"""How a process is set up before JAX starts."""

import os
import platform
import subprocess
import sys

import pytest

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
