"""On this machine, a process for every bundle: one that is killed takes no other with it."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rbve import stopping
from rbve.sweep.plan import Bundle, Stores
from rbve.sweep.worker import DAMAGED, FAILED, PROGRESS, STOPPED, OnProgress
from rbve.training.run import Progress

FOLDER = "bundles"  # OUT/bundles: what is at work, and the log of what failed
_SECONDS = 0.1  # between two looks at the workers


def workers(devices: int) -> int:
    return max(1, len(os.sched_getaffinity(0)) // devices)


def run(bundles: Sequence[Bundle], out: Path, on_progress: OnProgress, stores: Stores) -> list[str]:
    """The rest goes on after a worker was killed; after an error in one none is begun."""
    del stores  # a worker opens its own
    waiting, running = list(bundles), list[_Worker]()
    failures: list[str] = []
    error: ValueError | None = None
    try:
        while running or (waiting and error is None):
            while waiting and error is None and len(running) < workers(bundles[0].devices):
                running.append(_Worker(waiting.pop(0), out))
            time.sleep(_SECONDS)
            stopping.check()
            for worker in list(running):
                ended = worker.process.poll() is not None  # first, so that no line is missed
                worker.tell(on_progress)
                if ended:
                    running.remove(worker)
                    try:
                        failures += worker.end()
                    except ValueError as raised:
                        error = error or raised
    finally:
        for worker in running:  # interrupted: they save what they have
            worker.process.terminate()
        for worker in running:
            worker.process.communicate()
            worker.remove()
        with suppress(OSError):  # the logs of those that failed
            (out / FOLDER).rmdir()
    if error is not None:
        raise error
    return failures


class _Worker:
    def __init__(self, bundle: Bundle, out: Path) -> None:
        self.bundle = bundle
        self.file = bundle.write(out / FOLDER)
        self.progress = self.file.with_suffix(PROGRESS)
        self.log = self.file.with_suffix(".log")
        self.progress.write_bytes(b"")
        self.read = 0  # bytes of the progress that were told
        # The modules of this process, wherever it found them; a session of its own, so that a
        # terminal's Ctrl-C reaches this process alone, and a pipe that tells of its end.
        path = os.pathsep.join(str(Path(place).absolute()) for place in sys.path)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "rbve.sweep.worker", self.file, out, "--until-eof"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,
            )

    def tell(self, on_progress: OnProgress) -> None:
        """What it has written since last asked."""
        with open(self.progress, "rb") as file:
            file.seek(self.read)
            lines = file.read().splitlines(keepends=True)
        jobs = {job.id: job for job in self.bundle.jobs}
        for line in lines:
            if not line.endswith(b"\n"):
                break
            self.read += len(line)
            told = json.loads(line)
            if "note" in told:
                warnings.warn(told["note"], stacklevel=2)
            else:
                on_progress(Progress(jobs[told["job"]], told["step"], told["metrics"]))

    def end(self) -> list[str]:
        """A line if it did not come to its end and the others may; ValueError if they may not."""
        self.process.communicate()
        code = self.process.returncode
        last = (self.log.read_text(errors="replace").splitlines() or [""])[-1]
        if code in (0, FAILED, DAMAGED):
            self.remove()
            if code == FAILED:
                raise ValueError(last)
            return [last] if code == DAMAGED else []
        others = len(self.bundle.jobs) - 1
        whose = self.bundle.jobs[0].id + (f" and {others} more" if others else "")
        if code < 0 or code == STOPPED:
            number = signal.SIGTERM if code == STOPPED else -code
            name = signal.Signals(number).name
            name += " (out of memory?)" if number == signal.SIGKILL else ""
            self.remove()
            remedy = "run the same command again, and it goes on"
            return [f"the worker of {whose} was ended by {name}; {remedy}"]
        raise ValueError(f"the worker of {whose} failed: {last}; see {self.log}")

    def remove(self) -> None:
        for file in (self.file, self.progress, self.log):
            file.unlink(missing_ok=True)
