"""On this machine, a process for every bundle: one that is killed takes no other with it."""

import os
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rbve import stopping
from rbve.sweep import child
from rbve.sweep.child import DAMAGED, FAILED, IN_USE
from rbve.sweep.plan import Bundle, Stores
from rbve.sweep.worker import OnProgress
from rbve.training.run import Progress

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
            child.remove(worker.file)
        with suppress(OSError):  # the logs of those that failed
            (out / child.FOLDER).rmdir()
    if error is not None:
        raise error
    return failures


class _Worker:
    def __init__(self, bundle: Bundle, out: Path) -> None:
        self.bundle = bundle
        self.file = bundle.write(out / child.FOLDER)
        self.file.with_suffix(child.LOG).unlink(missing_ok=True)
        self.follower = child.Follower(self.file)
        self.process = child.start(self.file, out)

    def tell(self, on_progress: OnProgress) -> None:
        """What it has written since last asked."""
        jobs = {job.id: job for job in self.bundle.jobs}
        for told in self.follower.lines():
            if "note" in told:
                warnings.warn(told["note"], stacklevel=2)
            else:
                on_progress(Progress(jobs[told["job"]], told["step"], told["metrics"]))

    def end(self) -> list[str]:
        """A line if it did not come to its end and the others may; ValueError if they may not."""
        self.process.communicate()
        code = self.process.returncode
        last = child.last_line(self.file)
        if code in (0, FAILED, DAMAGED, IN_USE):
            child.remove(self.file)
            if code in (FAILED, IN_USE):
                raise ValueError(last)
            return [last] if code == DAMAGED else []
        whose = child.whose(self.bundle.jobs)
        if name := child.end_of(code):
            child.remove(self.file)
            remedy = "run the same command again, and it goes on"
            return [f"the worker of {whose} was ended by {name}; {remedy}"]
        log = self.file.with_suffix(child.LOG)
        raise ValueError(f"the worker of {whose} failed: {last}; see {log}")
