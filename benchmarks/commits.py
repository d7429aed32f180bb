"""Speed and memory of two commits: the same commands in turns, compared round by round.

python benchmarks/commits.py OLD NEW [--rounds 3] [--only CASE]

Rates are per second of CPU time, which leaves out what other programs took. Those of updates are
by which a long run exceeds a short one, so that starting, compiling and the first evaluation do not
enter; converting counts whole. Memory is the largest that the command's process held.
"""

import argparse
import csv
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from compare_commits import checked_out  # noqa: E402

FEW = "--eval-episodes 4 --final-evaluations 1"
# What is recorded once, by the newer commit, and what both train on it.
RECORDED = {
    "cartpole": "record cartpole --policy uniform --episodes 200",
    "breakout": "record minatar:breakout --policy uniform --episodes 600",
    "memory_len": "record memory_len:10 --policy uniform --episodes 300",
}
# Data, settings, updates of the long run, and how many runs they are of.
TRAINED = {
    "updates": ("cartpole", "--algorithm rbve", 200_000, 1),
    "sweep": ("cartpole", "--algorithm rbve dqn --seed 0 1 2 3", 40_000, 8),
    "pixels": ("breakout", "--algorithm rbve --batch-size 32", 20_000, 1),
    "memory": ("memory_len", "--algorithm dqn --memory 64", 2_000, 1),
}
CASES = (*TRAINED, "convert")
LOG_ROWS = 400_000


class Lap(NamedTuple):
    rate: float  # updates or rows per second of CPU time
    mib: float  # the process's largest resident set


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=CASES, action="append", help="repeatable")
    arguments = parser.parse_args()
    chosen = arguments.only or CASES
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        sides = [
            checked_out(commit, folder / name)
            for name, commit in (("old", arguments.old), ("new", arguments.new))
        ]
        if "convert" in chosen:
            write_log(folder / "log.csv")
        for name in {TRAINED[case][0] for case in chosen if case in TRAINED}:
            run(sides[1], f"{RECORDED[name]} --out {folder / name}")
        for case in chosen:
            laps = [
                [measure(case, side, folder, number) for side in sides]
                for number in range(arguments.rounds)
            ]
            show(case, laps)


def show(case: str, laps: list[list[Lap]]) -> None:
    ratios = [new.rate / old.rate for old, new in laps]
    old, new = (statistics.median(lap[side].rate for lap in laps) for side in (0, 1))
    held = [statistics.median(lap[side].mib for lap in laps) for side in (0, 1)]
    print(
        f"{case}: new / old {statistics.median(ratios):.2f}x ({min(ratios):.2f} to "
        f"{max(ratios):.2f}); {old:,.0f} and {new:,.0f} per CPU second; "
        f"{held[0]:,.0f} and {held[1]:,.0f} MiB",
        flush=True,
    )


def measure(case: str, side: Path, folder: Path, number: int) -> Lap:
    out = folder / f"{case}-{side.name}-{number}"
    if case == "convert":
        columns = "--episode episode --action action --reward reward --observation x0 x1 x2 x3"
        seconds, mib = run(side, f"convert {folder / 'log.csv'} {out} {columns}")
        return Lap(LOG_ROWS / seconds, mib)
    data, words, steps, runs = TRAINED[case]
    used = []
    for length in (steps // 10, steps):
        own = f"--steps {length} --every {length} {FEW} --out {out}-{length}"
        seconds, mib = run(side, f"train {folder / data} {words} {own}")
        used.append(seconds)
    return Lap(runs * (steps - steps // 10) / (used[1] - used[0]), mib)


def run(code: Path, words: str) -> tuple[float, float]:
    """Run a command of that code; its seconds of CPU time and its largest resident set, MiB."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rbve.cli", *words.split()],
        cwd=code,
        env={**os.environ, "PYTHONPATH": str(code)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 3, 4):  # verdicts on data of random play
        sys.exit(f"{code.name}: rbve {words}\n{said[-2000:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def write_log(file: Path) -> None:
    draw = random.Random(0)
    with open(file, "w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["episode", "x0", "x1", "x2", "x3", "action", "reward"])
        for row in range(LOG_ROWS):
            numbers = [f"{draw.gauss(0, 1):.5f}" for _ in range(5)]
            rows.writerow([row // 50, *numbers[:4], draw.randrange(4), numbers[4]])


if __name__ == "__main__":
    main()
