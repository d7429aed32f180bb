"""Run one bundle of jobs: in this process, or as `python -m rbve.sweep.worker BUNDLE.json OUT`.

As a process it appends to BUNDLE.progress, a line of JSON each, {"job", "step", "metrics"} after
every interval of a job and {"note"} where users are to read something. It ends with

0    all jobs are finished
1    code failed, rbve's own or the user's: a traceback, then one line
2    bad input, in one line on stderr
3    a checkpoint is damaged (one line); all other jobs are finished
4    another process writes the folder of a job (one line)
143  SIGTERM, or with --until-eof the end of its input: it has saved, and can be started again
"""

import argparse
import json
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rbve import backend, stopping
from rbve.files import InUse, allow_open_files
from rbve.sweep.child import CRASHED, DAMAGED, FAILED, IN_USE, PROGRESS, STOPPED
from rbve.sweep.plan import Bundle, Stores, bundles
from rbve.training.member import Damaged
from rbve.training.run import Progress, train_members

OnProgress = Callable[[Progress], None]


def run_bundle(bundle: Bundle, out: Path, on_progress: OnProgress, stores: Stores) -> None:
    """Train its jobs into OUT/<job>, resuming what is there."""
    datasets = [stores.of(job.data) for job in bundle.jobs]
    folders = [out / job.id for job in bundle.jobs]
    held_out = [stores.held_out(job.data) for job in bundle.jobs]
    means: Any = {"devices": bundle.devices, "held_out": held_out}
    train_members(bundle.jobs, datasets, folders, on_progress, **means)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run one bundle of jobs.")
    parser.add_argument("bundle", type=Path, help="file of jobs, as an executor writes it")
    parser.add_argument("out", type=Path, help="folder for the runs")
    parser.add_argument("--until-eof", action="store_true", help="stop when stdin is closed")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: stopping.ask())
    if arguments.until_eof:
        threading.Thread(target=_stop_at_eof, daemon=True).start()
    try:
        _run_file(arguments.bundle, arguments.out.absolute())
    except stopping.Stopped:
        return STOPPED
    except (ValueError, OSError) as error:
        sys.stderr.write(" ".join(str(error).splitlines()) + "\n")
        codes: dict[type[Exception], int] = {Damaged: DAMAGED, InUse: IN_USE}
        return codes.get(type(error), FAILED)
    except Exception as error:
        traceback.print_exc()
        first = (str(error).splitlines() or [""])[0]
        sys.stderr.write(f"{type(error).__name__}: {first}\n")
        return CRASHED
    return 0


def _run_file(file: Path, out: Path) -> None:
    bundle = Bundle.read(file)
    backend.prepare(bundle.devices)
    allow_open_files(len(bundle.jobs))
    with open(file.with_suffix(PROGRESS), "a", encoding="utf-8") as progress:

        def write(**line: Any) -> None:
            progress.write(json.dumps(line) + "\n")
            progress.flush()

        def tell(each: Progress) -> None:
            write(job=each.job.id, step=each.step, metrics=each.metrics)

        def note(message: Any, category: type[Warning], *place: Any) -> None:
            if issubclass(category, UserWarning):
                write(note=str(message))
            else:
                usual(message, category, *place)

        with warnings.catch_warnings():
            usual, warnings.showwarning = warnings.showwarning, note  # type: ignore[assignment]
            _run_parts(bundle, out, tell)


def _run_parts(bundle: Bundle, out: Path, on_progress: OnProgress) -> None:
    """One program after another; what is damaged keeps none from its end."""
    stores, damage = Stores(marks=bundle.stores), list[str]()
    for part in bundles(bundle.jobs, out, stores, 1, bundle.devices):
        try:
            run_bundle(part, out, on_progress, stores)
        except Damaged as error:
            damage.append(str(error))
    if damage:
        raise Damaged("; ".join(damage))


def _stop_at_eof() -> None:
    while os.read(0, 1 << 10):
        pass
    stopping.ask()


if __name__ == "__main__":
    sys.exit(main())
