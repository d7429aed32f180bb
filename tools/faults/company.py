"""Two processes on one folder."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress

from _case import RECORD, ROLES, TRAIN, Case, demand, demand_equal, demand_one_line
from _nursery import Ended, Nursery


def two_at_once(case: Case) -> str:
    """The second is refused in a line; the first ends as if it had been alone."""
    commands: dict[str, tuple[object, ...]] = {
        "runs": ("train", case.catch(), *TRAIN, "--out"),
        "recording": (*RECORD, "--episodes", "40000", "--overwrite", "--out"),
        "store": ("convert", *ROLES, "--overwrite", case.offers(100_000)),
        "decisions.parquet": ("predict", case.shipped(), case.offers(100_000), "--out"),
    }
    with Nursery() as first:
        for name, command in commands.items():
            whole, out = case.whole(name, *command)[0], case.folder / name
            for _ in range(20):
                shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)
                if second := _second(case, first, (*command, out)):
                    break
            demand(second, f"{name}: the first ended before the second came, twenty times")
            demand_one_line(second, "is being written by another process")
            demand_equal(out, whole)
    return f"refused in a line: {', '.join(commands)}"


def _second(case: Case, first: Nursery, command: tuple[object, ...]) -> Ended | None:
    """How a second process of a command ends while the first, which goes on after it, is stopped
    amid its work; None where it was at its end already."""
    log = case.folder / "first.txt"
    first.begin(command, case.folder, log)
    for _ in range(3000):
        if at_work := _locks(case):
            break
        time.sleep(0.005)
    process, second = first.process_of(log), None
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGSTOP)
        try:
            if at_work and _locks(case):
                second = case.run(*command)
        finally:
            os.kill(process, signal.SIGCONT)
    ended = first.end(log)
    demand(ended.code == 0, ended.text[-600:])
    return second


def _locks(case: Case) -> bool:
    return any(case.folder.rglob(".*.lock"))
