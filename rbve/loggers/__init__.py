"""Where rows of runs also go while they train, one file each; its presence is its registration.

A logger file holds

    a docstring whose first line says where rows go
    opened   (out, run) -> a Sink for a run in the folder `out`; `run` has no rows yet

and, if it needs a package,

    require  () -> None; ImportError with what to install where it is missing

Rows stay the truth: a logger gets every row of a run's file from its first one on, also when the
run goes on after an interruption, so that what it shows is what the file holds.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from rbve import rows
from rbve.registry import Registry

LOGGERS = Registry("logger", __name__, __file__)


class Sink(Protocol):
    """What a run's rows go into, in their order."""

    def add(self, step: int, figures: Mapping[str, float]) -> None:
        """Figures by metric, of one step. A later call may have more of the same step."""

    def close(self) -> None: ...


class Loggers:
    """Follows the rows of runs below `out`; called as `on_progress` whenever a run has new ones."""

    def __init__(self, names: Sequence[str], out: Path) -> None:
        self.out = out
        modules = [LOGGERS.load(name) for name in dict.fromkeys(names)]
        for module in modules:  # told before anything is trained
            getattr(module, "require", lambda: None)()
        self._opened = [module.opened for module in modules]
        self._runs: dict[str, _Follower] = {}
        self._lock = Lock()  # members report from threads of their own

    def __enter__(self) -> "Loggers":
        return self

    def __call__(self, progress: Any) -> None:
        if not self._opened:
            return
        name = progress.job.id
        with self._lock:
            if name not in self._runs:
                self._runs[name] = _Follower(self.out, name, self._opened)
            self._runs[name].follow()

    def __exit__(self, *exception: object) -> None:
        for run in self._runs.values():
            run.follow()  # the last rows are written after the last report
            run.close()


class _Follower:
    def __init__(self, out: Path, name: str, opened: Sequence[Any]) -> None:
        self.file = out / name / rows.FILE
        self.read = 0  # bytes
        self.sinks: list[Sink] = []
        self._out, self._opened = out, opened

    def follow(self) -> None:
        """What was written since last asked."""
        with open(self.file, "rb") as file:
            file.seek(self.read)
            lines = file.read().splitlines(keepends=True)
        by_step: dict[int, dict[str, float]] = {}
        for line in lines:
            if not line.endswith(b"\n"):
                break
            self.read += len(line)
            fields = json.loads(line)
            if "job" in fields:
                run = rows.Run(fields["job"], fields["spec"], fields["facts"], [])
                self.sinks = [opened(self._out, run) for opened in self._opened]
            else:
                by_step.setdefault(fields["step"], {})[fields["metric"]] = fields["value"]
        for step, figures in by_step.items():
            for sink in self.sinks:
                sink.add(step, figures)

    def close(self) -> None:
        for sink in self.sinks:
            sink.close()
