"""The fuzzing command: every reader takes damaged files, and what goes wrong is found and kept."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rbve.data import formats

ROOT = Path(__file__).parents[1]


def fuzz(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "tools/fuzz_readers.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def rows(printed: str) -> dict[str, list[int]]:
    """Inputs, past checksums, clean errors, read fine and findings, by format."""
    found = {}
    for line in printed.splitlines()[1:]:
        if fields := re.fullmatch(r"(\w+) +(\d+) +(\d+) \(\d+%\) +(\d+) +(\d+) +(\d+)", line):
            name, *numbers = fields.groups()
            found[name] = list(map(int, numbers))
    return found


def test_every_reader_takes_damaged_files(tmp_path: Path) -> None:
    run = fuzz("--inputs", "300", "--seconds", "300", "--output", str(tmp_path / "out"))
    assert run.returncode == 0, run.stdout + run.stderr
    table = rows(run.stdout)
    assert set(table) == {*formats.names(), "all"}
    inputs, past, clean, fine, findings = table["all"]
    assert (inputs, findings) == (300, 0)
    assert clean + fine == 300
    assert past >= 150
    for name in formats.names():
        assert table[name][0] > 15
        assert table[name][2] > 0, "no damage was noticed"
    assert sum(table[name][0] for name in formats.names()) == 300
    assert not (tmp_path / "out" / "findings.txt").exists()


# Wraps a reader so that it goes wrong in each way once, after the seeds were read.
FAULTS = """
import os, time
from pathlib import Path
from rbve.data.formats import npz

right, calls, marks = npz.read, 0, Path(os.environ["MARKS"])

def wrong(path):
    global calls
    calls += 1
    if calls > 8 and (left := sorted(marks.iterdir())):
        left[0].unlink()
        {"1": os.abort, "2": lambda: time.sleep(60), "3": lambda: {}["x"], "4": unnamed}[
            left[0].name
        ]()
    return right(path)

def unnamed():
    raise ValueError("something is wrong")

npz.read = wrong
"""


def test_crashes_hangs_and_wrong_errors_are_findings(tmp_path: Path) -> None:
    marks, output = tmp_path / "marks", tmp_path / "out"
    marks.mkdir()
    for name in "1234":
        (marks / name).touch()
    (tmp_path / "sitecustomize.py").write_text(FAULTS)
    run = fuzz(
        *("--inputs", "150", "--format", "npz", "--longest", "4", "--output", str(output)),
        PYTHONPATH=str(tmp_path),
        MARKS=str(marks),
    )
    assert run.returncode == 1, run.stderr
    assert rows(run.stdout)["npz"][::4] == [150, 4]  # none is lost or counted twice
    for words in ("crash, SIGABRT", "hang of 4 s", "KeyError at", "Finding at"):
        assert run.stdout.count(f"1 x npz {words}") == 1, run.stdout
    kept = sorted(folder for folder in output.iterdir() if folder.is_dir())
    assert len(kept) == 4
    for folder in kept:
        assert (folder / "d.npz").is_file()
        assert folder.name.split("-")[0] in (folder / "ERROR.txt").read_text()
    texts = "".join((folder / "ERROR.txt").read_text() for folder in kept)
    assert "an error that names no file: something is wrong" in texts


def test_one_input_can_be_read_again() -> None:
    runs = [fuzz("--repeat", "7", "--format", "npz") for _ in range(2)]
    said = [re.sub(r"fuzz-\w+", "", run.stdout + run.stderr) for run in runs]
    assert said[0] == said[1]
    assert re.match(r"npz-\w+: d\.npz", said[0])
    assert "ValueError: " in said[0], "input 7 is one that is refused"


def test_other_folders_are_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("three years of work")
    run = fuzz("--inputs", "10", "--output", str(tmp_path))
    assert run.returncode == 1
    assert "not empty, and not of an earlier run" in run.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("name", formats.names())
def test_every_format_has_inputs(name: str) -> None:
    text = (ROOT / "tools" / "fuzz_inputs.py").read_text()
    assert re.search(rf'^    "{name}": {name},$', text, re.MULTILINE)
