"""Processes that wait for work, so that contestants with environments of their own can take turns.

A worker reads one JSON request a line and answers with one JSON line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from timing import Lap

FOLDER = Path(__file__).parent
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PJRT_NPROC": "1"}


def cores() -> list[int]:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class Worker:
    """A script of this folder in a process of its own, on one core if `core` is given.

    It has one thread, unless `environment` says otherwise.
    """

    def __init__(
        self,
        script: str,
        data: Path,
        python: str = sys.executable,
        core: int | None = None,
        environment: Mapping[str, str] = ONE_THREAD,
    ) -> None:
        pin = ["taskset", "-c", str(core)] if core is not None and shutil.which("taskset") else []
        self.process = subprocess.Popen(
            [*pin, python, str(FOLDER / script), str(data)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # A cache of its own: the first run of a worker compiles, later ones need not.
            env=os.environ | environment | {"XDG_CACHE_HOME": str(data.parent / "cache")},
        )

    def send(self, **request: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(self.process.args)} ended: run it by hand to see why")
        return json.loads(line)

    def ask(self, **request: Any) -> dict[str, Any]:
        self.send(**request)
        return self.receive()

    def watch(self) -> Callable[[], float]:
        """Bytes of memory of its own the process held at most, from now on; asked when it is done.

        Pages of mapped files are not counted: the system takes them back when it needs to.
        """
        status = Path(f"/proc/{self.process.pid}/status")
        peak, done = [0], threading.Event()

        def look() -> None:
            while not done.wait(0.05):
                lines = status.read_text().splitlines()
                held = [int(line.split()[1]) for line in lines if line.startswith("RssAnon")]
                peak[0] = max(peak[0], *held)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()

        def tell() -> float:
            done.set()
            thread.join()
            return peak[0] * 1024.0

        return tell

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def ask_all(workers: Sequence[Worker], request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All at once."""
    for worker in workers:
        worker.send(**request)
    return [worker.receive() for worker in workers]


def per_update(answers: Sequence[dict[str, Any]]) -> Lap:
    """Wall time per update of all together; CPU time per update."""
    mean_cpu = sum(1 / answer["cpu_rate"] for answer in answers) / len(answers)
    return Lap(1 / sum(answer["rate"] for answer in answers), mean_cpu)


def serve(prepare: Callable[[str], Callable[..., dict[str, Any]]]) -> None:
    """The worker's side: `prepare` takes the data's path and gives what answers requests.

    Whatever libraries print goes to stderr, not between the answers.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answer = prepare(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), file=answers, flush=True)
