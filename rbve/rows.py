"""Result rows: one tidy JSON-lines file per run, the job in its first line; reports read no more.

{"job": "<id>", "spec": {...}, "facts": {...}}
{"step": 5000, "metric": "return", "value": 0.98, "n": 100}

A packed file holds many runs, one after the other, compressed.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rbve.files import write_atomically

FILE = "rows.jsonl"
EVALUATION = "evaluation.jsonl"  # of an evaluator beside training, in the same form
PACKED = "rows.jsonl.gz"


class Row(NamedTuple):
    step: int  # updates done
    metric: str
    value: float  # NaN where undefined
    n: int  # how many episodes, updates or evaluations the value averages


class Run(NamedTuple):
    """One file of rows."""

    job: str  # id
    spec: dict[str, Any]  # the whole Job
    facts: dict[str, Any]  # of the data: behaviour, random and reference returns, sizes
    rows: list[Row]

    def last(self, metric: str) -> float | None:
        values = [row.value for row in self.rows if row.metric == metric]
        return values[-1] if values else None


class RowFile:
    """Appends rows; `keep` drops what was written after the last checkpoint."""

    def __init__(self, folder: Path, job: str, spec: dict[str, Any], facts: dict[str, Any]) -> None:
        self.path = folder / FILE
        self.header = json.dumps({"job": job, "spec": spec, "facts": facts})
        self.count = 0

    def keep(self, count: int) -> None:
        """Start from the first `count` rows on disk."""
        lines = self.path.read_text(encoding="utf-8").splitlines()[1 : count + 1] if count else []
        if len(lines) < count:
            raise ValueError(f"{self.path}: {len(lines)} rows, the checkpoint counted {count}")
        self.count = count
        write_atomically(self.path, ("\n".join([self.header, *lines]) + "\n").encode())

    def append(self, rows: Sequence[Row]) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(row._asdict()) + "\n" for row in rows)
            file.flush()
            os.fsync(file.fileno())
        self.count += len(rows)


def write(run: Run, file: Path) -> None:
    """A whole run at once."""
    write_atomically(file, text(run).encode())


def text(run: Run) -> str:
    head = json.dumps({"job": run.job, "spec": run.spec, "facts": run.facts})
    return "\n".join([head, *(json.dumps(row._asdict()) for row in run.rows)]) + "\n"


def pack(runs: Iterable[Run], file: Path) -> None:
    """Equal runs give an equal file."""
    ordered = sorted(runs, key=lambda run: run.job)
    content = "".join(text(run) for run in ordered).encode()
    write_atomically(file, gzip.compress(content, mtime=0))


def read(path: Path) -> Run:
    runs = read_all(path)
    if len(runs) != 1:
        raise ValueError(f"{path}: not a file of result rows ({len(runs)} runs where one belongs)")
    return runs[0]


def read_all(path: Path) -> list[Run]:
    """Every run of a file, packed or not."""
    try:
        raw = path.read_bytes()
        content = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode()
        runs: list[Run] = []
        # A line without its end was being written when the process was killed.
        for line in content[: content.rfind("\n") + 1].splitlines():
            fields = json.loads(line)
            if "job" in fields:
                runs.append(Run(fields["job"], fields["spec"], fields["facts"], []))
            else:
                runs[-1].rows.append(Row(**fields))
        return runs
    except (ValueError, KeyError, TypeError, IndexError, EOFError, OSError) as error:
        raise ValueError(f"{path}: not a file of result rows ({error})") from None


def find(paths: Iterable[Path]) -> list[Run]:
    """All runs below the given folders, in a stable order."""
    runs = []
    for path in paths:
        if not path.exists():
            raise ValueError(f"{path}: no such file or folder")
        files = [path] if path.is_file() else sorted([*path.rglob(FILE), *path.rglob(PACKED)])
        if not files:
            raise ValueError(
                f"{path}: no {FILE} below; train with `rbve train ... --out {path}` or "
                f"`rbve reproduce ... --out {path}`"
            )
        runs += [with_evaluation(run, file) for file in files for run in read_all(file)]
    return runs


def with_evaluation(run: Run, file: Path) -> Run:
    """A run whose figures come from an evaluator beside it, where there is one."""
    beside = file.parent / EVALUATION
    if file.name != FILE or not beside.exists():
        return run
    found = read(beside)
    measured = {row.metric for row in found.rows}
    kept = [row for row in run.rows if row.metric not in measured]
    return run._replace(facts=found.facts, rows=[*kept, *found.rows])
