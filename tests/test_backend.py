"""How a process is set up before JAX starts."""

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


@pytest.mark.skipif(sys.platform != "linux", reason="arenas are glibc's")
def test_threads_share_two_pools_of_memory(tmp_path):
    # Without the limit sixteen threads take eight arenas a core.
    said = tmp_path / "malloc.xml"
    subprocess.run([sys.executable, "-c", ARENAS_OF_BUSY_THREADS, said], check=True)
    assert said.read_text().count("<heap nr=") == 2
