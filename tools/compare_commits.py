"""Whether two commits record the same data and learn the same policies, bit for bit.

python tools/compare_commits.py OLD NEW [--only CASE] [--out FOLDER]

Checks both commits out, runs the same commands with each and compares what they wrote: the columns
of the stores, every result row and the weights of every policy. Exit code 1 where something
differs. All algorithms are trained on vectors, with masks, with pixels, with memory, and from rows
on disk.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

ALGORITHMS = ["bc", "bcq", "bve", "cql", "dqn", "filtered_bc", "iqn", "mc", "rbve", "rdqn", "rem"]
# Samples and heads that keep the larger networks quick to compile.
SMALL = "--set samples=4 --set act_samples=4 --set heads=5"
SHORT = "--steps 120 --every 50 --eval-episodes 4 --target-period 25 --final-evaluations 2"
NEVER_EQUAL = {"seconds", "updates_per_second"}  # metrics of the clock
COLUMNS = ("episode", "x", "y", "kind", "action", "reward")  # of the log with masks


@dataclass(frozen=True)
class Case:
    """Data made by one command, and all algorithms trained on it by another."""

    data: str
    train: str


CASES = {
    "vectors": Case("record catch --out {data} --policy uniform --episodes 60", "--hidden 8"),
    "masks": Case(
        "convert {masked} {data} --episode episode --action action --reward reward "
        "--observation x y kind --legal legal_*",
        "--hidden 8 --env none",
    ),
    "pixels": Case(
        "record minatar:breakout --out {data} --policy uniform --episodes 20",
        "--hidden 8 --batch-size 16 --env none",
    ),
    "memory": Case(
        "record memory_len:5 --out {data} --policy uniform --episodes 40",
        "--memory 8 --batch-size 4",
    ),
    "windows": Case(
        "record catch --out {data} --policy uniform --episodes 60",
        "--memory 8 --batch-size 4 --sequence 6 --burn-in 3",
    ),
    "disk": Case(
        "record minatar:breakout --out {data} --policy uniform --episodes 20 --seed 1",
        "--hidden 8 --batch-size 16 --rows disk --env none",
    ),
    "online": Case(
        "record catch --out {data} --episodes 200 --keep 0.5 --noise 0.25", "--n-step 3"
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--only", choices=CASES, action="append", help="repeatable")
    parser.add_argument("--out", type=Path, help="keep what was written here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = (arguments.out or Path(scratch)).absolute()
        out.mkdir(parents=True, exist_ok=True)
        masked_log(out / "masked.csv")
        chosen = arguments.only or list(CASES)
        for side, commit in (("old", arguments.old), ("new", arguments.new)):
            run_all(checked_out(commit, out / f"{side}-code"), out / side, chosen)
        different = list(differences(out, chosen))
    print("\n".join(different) if different else f"equal: {', '.join(chosen)}")
    sys.exit(bool(different))


def checked_out(commit: str, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    archive = subprocess.run(["git", "archive", commit], check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def run_all(code: Path, out: Path, chosen: list[str]) -> None:
    for name in chosen:
        case = CASES[name]
        data, runs = out / name / "data", out / name / "runs"
        command(code, case.data.format(data=data, masked=out.parent / "masked.csv"))
        algorithms = [a for a in ALGORITHMS if not ("--memory" in case.train and a == "bcq")]
        command(
            code,
            f"train {data} --out {runs} --algorithm {' '.join(algorithms)} {case.train} "
            f"{SHORT} {SMALL}",
        )


def command(code: Path, words: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(code)}
    done = subprocess.run(
        [sys.executable, "-m", "rbve.cli", *words.split()],
        cwd=code,
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 3, 4):  # verdicts on data of random play
        sys.exit(f"{code.name}: rbve {words}\n{done.stderr[-2000:]}")


def masked_log(file: Path) -> None:
    """A log of 40 episodes whose actions are not always allowed."""
    draw = random.Random(0)
    with open(file, "w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(
            ["episode", "x", "y", "kind", "action", "reward", "legal_0", "legal_1", "legal_2"]
        )
        for episode in range(40):
            for _ in range(draw.randint(2, 9)):
                legal = [1, draw.randint(0, 1), draw.randint(0, 1)]
                action = draw.choice([k for k in range(3) if legal[k]])
                numbers = [round(draw.gauss(0, 1), 3) for _ in range(3)]
                kind = draw.choice(["a", "b"])
                rows.writerow([episode, *numbers[:2], kind, action, numbers[2], *legal])


def differences(out: Path, chosen: list[str]) -> Iterator[str]:
    """What the two sides wrote differently, a line each."""
    for name in chosen:
        old, new = out / "old" / name, out / "new" / name
        for file in sorted((old / "data").glob("*.bin")):
            twin = new / "data" / file.name
            if not twin.exists() or file.read_bytes() != twin.read_bytes():
                yield f"{name}: the recorded column {file.name} differs"
        for algorithm in ALGORITHMS:
            runs = [sorted((side / "runs").glob(f"{algorithm}-*")) for side in (old, new)]
            if len(runs[0]) != len(runs[1]):
                yield f"{name}: {algorithm}: {len(runs[0])} runs, and {len(runs[1])}"
            for one, other in zip(*runs, strict=False):
                yield from (f"{name}: {algorithm}: {found}" for found in compared(one, other))


def compared(old: Path, new: Path) -> Iterator[str]:
    """At most three lines of one run."""
    rows = [measured(folder / "rows.jsonl") for folder in (old, new)]
    unequal = [
        key
        for key in sorted(rows[0].keys() & rows[1].keys())
        if np.float64(rows[0][key]).tobytes() != np.float64(rows[1][key]).tobytes()
    ]
    if unequal:
        step, metric = unequal[0]
        values = " and ".join(repr(each[unequal[0]]) for each in rows)
        yield f"{len(unequal)} rows differ, first {metric} of step {step}: {values}"
    if missing := sorted({metric for _, metric in rows[0].keys() - rows[1].keys()}):
        yield f"rows that are gone: {', '.join(missing)}"
    weights = [load_file(folder / "policy.safetensors")["weights"] for folder in (old, new)]
    if weights[0].tobytes() != weights[1].tobytes():
        yield f"weights differ, by {np.abs(weights[0] - weights[1]).max():.3g} at most"


def measured(file: Path) -> dict[tuple[int, str], float]:
    lines = (json.loads(line) for line in file.read_text().splitlines()[1:])
    return {
        (line["step"], line["metric"]): line["value"]
        for line in lines
        if line.get("metric") not in NEVER_EQUAL
    }


if __name__ == "__main__":
    main()
