"""An interpreter with d3rlpy: its dependencies do not mix with ours, so it gets its own folder."""

from __future__ import annotations

import os
import subprocess
import sys

from rbve.backend import cache_folder

TORCH, D3RLPY = "torch==2.13.0", "d3rlpy==2.8.1"


def find_python() -> str | None:
    """RBVE_D3RLPY_PYTHON, or an environment made here once; None if it cannot be made."""
    given = os.environ.get("RBVE_D3RLPY_PYTHON")
    if given:
        if has_d3rlpy(given):
            return given
        print(f"{given} has no d3rlpy, its columns are left out", file=sys.stderr)
        return None
    folder = cache_folder() / "d3rlpy-venv"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = folder / ".ready"
    if ready.exists():
        return str(python)
    print(f"making an environment with {TORCH} and {D3RLPY} in {folder} (once)", file=sys.stderr)
    steps = [
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", TORCH],
        [str(python), "-m", "pip", "install", "--quiet", D3RLPY],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True)
        if done.returncode:
            words = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
            print(
                f"d3rlpy cannot be installed, its columns are left out: {words[0]}", file=sys.stderr
            )
            return None
    ready.touch()
    return str(python)


def has_d3rlpy(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", "import d3rlpy"], capture_output=True).returncode == 0
    except OSError:
        return False
