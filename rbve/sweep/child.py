"""A bundle of jobs in a process of its own: how it is started, followed, and what its end means.

Beside BUNDLE.json stand BUNDLE.progress, a line of JSON after every interval of a job, and
BUNDLE.log, what the process printed. rbve/sweep/worker.py is that process.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = "bundles"  # OUT/bundles: what is at work, and the log of what failed
PROGRESS, LOG = ".progress", ".log"  # suffixes
CRASHED, FAILED, DAMAGED, IN_USE, STOPPED = 1, 2, 3, 4, 128 + signal.SIGTERM  # exit codes


def start(
    file: Path, out: Path, settings: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    """Run the bundle of `file` into `out` with the modules of this process, wherever it found them.

    In a session of its own, so that a terminal's Ctrl-C reaches this process alone; a pipe tells it
    of this process's end. `settings` are further variables of its environment.
    """
    path = os.pathsep.join(str(Path(place).absolute()) for place in sys.path)
    with open(file.with_suffix(LOG), "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "rbve.sweep.worker", file, out, "--until-eof"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, **(settings or {}), "PYTHONPATH": path},
            cwd=cwd,
            start_new_session=True,
        )


def last_line(file: Path) -> str:
    """What the process of a bundle printed last."""
    log = file.with_suffix(LOG)
    text = log.read_text(errors="replace") if log.exists() else ""
    return (text.splitlines() or [""])[-1]


def end_of(code: int) -> str:
    """How a process ended that did not end by itself; nothing where it did."""
    if code >= 0 and code != STOPPED:
        return ""
    name = signal.Signals(signal.SIGTERM if code == STOPPED else -code).name
    return f"{name} (out of memory?)" if name == "SIGKILL" else name


def whose(jobs: Sequence[Any]) -> str:
    others = len(jobs) - 1
    return jobs[0].id + (f" and {others} more" if others else "")


def note(file: Path, **line: Any) -> None:
    """Append a line to the progress of a bundle."""
    with open(file.with_suffix(PROGRESS), "a", encoding="utf-8") as progress:
        progress.write(json.dumps(line) + "\n")


class Follower:
    """Reads what a bundle's process told, each line once."""

    def __init__(self, file: Path) -> None:
        self.file = file.with_suffix(PROGRESS)
        self.file.write_bytes(b"")
        self._read = 0  # bytes that were told

    def lines(self) -> list[dict[str, Any]]:
        with open(self.file, "rb") as file:
            file.seek(self._read)
            lines = file.read().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        self._read += sum(map(len, whole))
        return [json.loads(line) for line in whole]


def remove(file: Path) -> None:
    """The bundle and what stands beside it."""
    for each in (file, file.with_suffix(PROGRESS), file.with_suffix(LOG)):
        each.unlink(missing_ok=True)
