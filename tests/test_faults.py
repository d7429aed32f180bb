"""The faults of `make faults`, with few kills."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools" / "faults"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_each_fault_is_listed() -> None:
    done = run("--help")
    assert done.returncode == 0, done.stderr
    assert "killed_trainer: Two runs end with the bytes" in " ".join(done.stdout.split())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forks, and adopts orphans")
def test_all_of_them(tmp_path: Path) -> None:
    done = run("--kills", 24, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("failed: none")
