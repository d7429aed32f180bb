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


@pytest.mark.skipif(sys.platform != "linux", reason="forks, and adopts orphans")
def test_a_converter_is_killed(tmp_path: Path) -> None:
    done = run("--only", "killed_converter", "--kills", 3, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed_converter: 3 kills" in done.stdout
    assert done.stdout.splitlines()[-1] == "kills: 3; faults: 1, of which failed: none"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forks, and adopts orphans")
def test_all_of_them(tmp_path: Path) -> None:
    done = run("--kills", 24, "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("failed: none")
