"""Feed mutated files to every reader; only datasets and clean errors may come out.

    python tools/fuzz_readers.py --inputs 100000 --seconds 900 --seed 0
    python tools/fuzz_readers.py --format npz --inputs 5000
    python tools/fuzz_readers.py --repeat 1234 --seed 0    read one input again, nothing caught

A finding is any other exception, a warning, an error that names no file, a part whose columns do
not fit together, a crash, a hang, or memory out of proportion. Its files are saved in --output.
The exit code is 1 if there are findings.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from fuzz_inputs import MAKERS  # noqa: E402
from fuzz_seeds import build  # noqa: E402
from fuzz_worker import (  # noqa: E402
    OUTCOMES,
    Options,
    Shared,
    draw,
    repeat,
    save,
    scratch,
    slot,
    work,
)

WORKERS = 2
POLL = 0.05  # seconds between looks at the workers


class Pool:
    """Keeps the workers alive; one that crashes or hangs goes on behind the input it met."""

    def __init__(self, options: Options, inputs: int, longest: float, folder: Path) -> None:
        self.options, self.inputs, self.folder = options, inputs, folder
        self.longest = longest  # seconds for one input
        self.context = multiprocessing.get_context("spawn")
        cells = WORKERS * len(options.formats) * 2 * len(OUTCOMES)
        self.shared = Shared(
            self.context.RawArray("q", [-1] * WORKERS),
            self.context.RawArray("d", WORKERS),
            self.context.RawArray("q", cells),
            self.context.RawValue("i", 0),
        )
        (folder / "seeds").mkdir()
        made = build(folder / "seeds")
        self.seeds = [seed for seed in made if seed.format in options.formats]
        self.starts = 0
        self.workers: list[BaseProcess | None] = [
            self.start(worker, range(worker, inputs, WORKERS)) for worker in range(WORKERS)
        ]

    def start(self, worker: int, numbers: range) -> BaseProcess | None:
        if not numbers:
            return None
        self.starts += 1
        own = self.folder / str(self.starts)
        own.mkdir()
        self.shared.current[worker] = -1
        process = self.context.Process(
            target=work,
            args=(worker, numbers, self.options, self.shared, self.seeds, own),
            daemon=True,
        )
        process.start()
        return process

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while any(self.workers):
            time.sleep(POLL)
            now = time.monotonic()
            if now > end:
                self.shared.stop.value = 1
            for worker, process in enumerate(self.workers):
                if process is not None:
                    self.watch(worker, process, now)

    def watch(self, worker: int, process: BaseProcess, now: float) -> None:
        begun = self.shared.current[worker] >= 0
        alive = process.is_alive()
        hangs = alive and begun and now - self.shared.started[worker] > self.longest
        if alive and not hangs:
            return
        if hangs:
            process.kill()
        process.join()
        number = self.shared.current[worker]
        if not hangs and process.exitcode == 0:
            self.workers[worker] = None
            return
        if number < 0:
            raise SystemExit(f"a worker died before its first input; see {self.options.output}")
        how = f"hang of {self.longest:g} s" if hangs else f"crash, {ended(process.exitcode)}"
        seed, made, _ = draw(self.seeds, self.options, number)
        self.shared.counts[slot(self.options, worker, seed.format, made.past, "finding")] += 1
        log = self.options.output / f"worker-{worker}.log"
        save(self.options, number, seed, made, f"{seed.format} {how}", tail(log))
        following = range(number + WORKERS, self.inputs, WORKERS)
        self.workers[worker] = self.start(worker, following)

    def count(self, format: str, past: bool, outcome: str) -> int:
        places = [slot(self.options, worker, format, past, outcome) for worker in range(WORKERS)]
        return sum(self.shared.counts[place] for place in places)


def ended(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"


def tail(log: Path) -> str:
    """The last lines a worker's libraries printed."""
    with open(log, "rb") as file:
        file.seek(max(0, file.seek(0, 2) - 4000))
        return file.read().decode(errors="replace")


def table(pool: Pool, formats: tuple[str, ...]) -> tuple[str, int]:
    """The table to print, and the number of findings."""
    lines = ["format         inputs  past checksums  clean errors  read fine  findings"]
    total: Counter[str] = Counter()
    for format in formats:
        row: Counter[str] = Counter()
        for past in (False, True):
            for outcome in OUTCOMES:
                count = pool.count(format, past, outcome)
                row[outcome] += count
                row["inputs"] += count
                row["past"] += count * past
        lines.append(line(format, row))
        total += row
    lines.append(line("all", total))
    return "\n".join(lines), total["finding"]


def line(name: str, row: Counter[str]) -> str:
    share = f"{row['past']} ({row['past'] / max(1, row['inputs']):.0%})"
    return (
        f"{name:<13}{row['inputs']:>8}{share:>16}{row['clean error']:>14}{row['read fine']:>11}"
        f"{row['finding']:>10}"
    )


def findings(output: Path) -> str:
    """Each kind once: how often, and the first input."""
    file = output / "findings.txt"
    if not file.exists():
        return ""
    first: dict[str, int] = {}
    often: Counter[str] = Counter()
    for entry in file.read_text(encoding="utf-8").splitlines():
        number, key = entry.split("\t")
        first[key] = min(first.get(key, int(number)), int(number))
        often[key] += 1
    lines = [
        f"{count:>6} x {key}, first by input {first[key]}" for key, count in often.most_common()
    ]
    return "\n".join([*lines, f"Their files are in {output}."])


def clear(output: Path) -> None:
    """An empty folder; only one of an earlier run is emptied."""
    if output.exists() and any(output.iterdir()):
        if not (output / "worker-0.log").exists():
            raise SystemExit(f"{output}: not empty, and not of an earlier run; choose another")
        shutil.rmtree(output)
    output.mkdir(parents=True, exist_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", choices=sorted(MAKERS), help="only this one")
    parser.add_argument("--longest", type=float, default=10, help="seconds for one input")
    output = Path(tempfile.gettempdir()) / "fuzz-findings"
    parser.add_argument("--output", type=Path, default=output, help=f"a folder; default {output}")
    parser.add_argument("--repeat", type=int, metavar="NUMBER", help="read one input again")
    given = parser.parse_args()
    formats = (given.format,) if given.format else tuple(MAKERS)
    options = Options(given.seed, formats, given.output)
    if given.repeat is not None:
        return repeat(given.repeat, options)
    clear(given.output)
    folder = scratch()
    begun = time.monotonic()
    try:
        pool = Pool(options, given.inputs, given.longest, folder)
        pool.run(given.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text, count = table(pool, formats)
    seconds = time.monotonic() - begun
    read = sum(pool.shared.counts)
    print(text)
    print(f"{read} of {given.inputs} inputs in {seconds:.0f} s, {read / seconds:.0f} a second")
    if count:
        print(findings(given.output))
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
