"""Kill workers, nodes and drivers of a Ray cluster at random moments: are the rows still the same?

python tools/cluster_faults.py [--kills 9] [--seconds 4 12] [--seed 0] [--out FOLDER]
    [--study [FLAGS OF rbve reproduce]]

Runs a sweep in one process, then on Ray's own test cluster of three nodes on this machine, where it
kills in turn a node, the driver and a worker, each at a random moment, with SIGKILL;
a node that is gone is replaced, a driver started again. Should the sweep end first, it begins
another. It prints counts and whether rows, policies and checkpoints are equal byte for byte;
exit code 1 if not. --study takes `rbve reproduce bsuite --scale quick` for the sweep.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ray_cluster

RBVE = [sys.executable, "-m", "rbve.cli"]
FILES = ("rows.jsonl", "policy.safetensors", "checkpoint.safetensors")
FAULTS = ("node", "driver", "worker")
GIVEN_UP = 2  # exit code of a command of which a job was lost too often


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=9, help="how many in all")
    parser.add_argument("--seconds", type=float, nargs=2, default=(4, 12), help="between kills")
    parser.add_argument("--study", action="store_true", help="the quick bsuite study")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--out", type=Path, help="folder; default: one that is removed")
    arguments, flags = parser.parse_known_args()
    if flags and not arguments.study:
        parser.error(f"{flags[0]}: only with --study")
    moments = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as scratch:
        out = (arguments.out or Path(scratch)).absolute()
        out.mkdir(parents=True, exist_ok=True)
        sweep = Sweep(out, arguments.study, flags)
        sweep.alone()
        counts, rounds, equal = collections.Counter[str](), 0, 0
        with ray_cluster.running(3) as cluster:
            faults = kills(moments, arguments)
            while sum(counts[each] for each in FAULTS) < arguments.kills:
                shutil.rmtree(sweep.runs, ignore_errors=True)
                disturbed(sweep, cluster, faults, counts)
                rounds += 1
                equal += sweep.equal_runs()
    made = ", ".join(f"{counts[each]} of a {each}" for each in FAULTS)
    print(f"kills: {sum(counts[each] for each in FAULTS)} ({made})")
    print(f"tasks tried again by the driver: {counts['again']}")
    print(f"commands started: {counts['start']}, of which gave a job up: {counts['given up']}")
    print(f"runs equal byte for byte: {equal} of {rounds * len(sweep.expected)}")
    sys.exit(equal != rounds * len(sweep.expected))


class Sweep:
    """What is trained, and what comes of it in one process."""

    def __init__(self, out: Path, study: bool, flags: list[str]) -> None:
        self.kept = out / "whole"  # the runs made in one process
        if study:
            self.runs = out / "study" / "runs"
            words = f"reproduce bsuite --scale quick --out {out / 'study'}"
            self.command = [*RBVE, *words.split(), *flags]
            return
        self.runs = out / "runs"
        data = out / "catch"
        if not data.exists():
            subprocess.run(
                [*RBVE, *f"record catch --policy uniform --out {data}".split()], check=True
            )
        sizes = "--steps 30000 --every 1000 --eval-episodes 20 --env catch"
        methods = "--algorithm bve rbve dqn bc --seed 0 1 2"
        words = f"train {data} {methods} {sizes} --out {self.runs}"
        self.command = [*RBVE, *words.split()]

    def alone(self) -> None:
        """In one process, in the same place, since rows name the data's path."""
        if not self.kept.exists():
            began = time.monotonic()
            subprocess.run(self.command, check=True, stdout=subprocess.DEVNULL)
            print(f"in one process: {time.monotonic() - began:.0f} s", flush=True)
            os.replace(self.runs, self.kept)
        self.expected = {
            folder.name: [(folder / name).read_bytes() for name in FILES]
            for folder in self.kept.iterdir()
            if (folder / "policy.safetensors").exists()
        }

    def equal_runs(self) -> int:
        own = (
            [(self.runs / name / file).read_bytes() for file in FILES] == content
            for name, content in self.expected.items()
            if all((self.runs / name / file).exists() for file in FILES)
        )
        return sum(own)


def kills(moments: random.Random, arguments: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """(what, when): seconds after the last one, or after a command began to train."""
    for fault in itertools.islice(itertools.cycle(FAULTS), arguments.kills):
        yield fault, moments.uniform(*arguments.seconds)


def disturbed(
    sweep: Sweep,
    cluster: ray_cluster.RayCluster,
    faults: Iterator[tuple[str, float]],
    counts: collections.Counter[str],
) -> None:
    """The sweep on the cluster, to its end, with kills as long as there are any left."""
    process: subprocess.Popen[bytes] | None = None
    fault, since = next(faults, None), 0.0
    try:
        while process is None or (code := process.poll()) != 0:
            if process is None or code is not None:
                if process is not None and code not in (-signal.SIGKILL, GIVEN_UP):
                    raise SystemExit(f"the command ended with code {code}")
                counts["given up"] += process is not None and code == GIVEN_UP
                counts["start"] += 1
                command = [*sweep.command, "--cluster", cluster.address]
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
                since = 0.0
            time.sleep(0.1)
            at_work = workers(sweep.runs)
            since = since or (time.monotonic() if at_work else 0.0)
            if fault is None or not at_work or time.monotonic() - since < fault[1]:
                continue
            if fault[0] == "node":
                cluster.tell("kill")
                cluster.tell("add")
            else:
                os.kill(process.pid if fault[0] == "driver" else at_work[0], signal.SIGKILL)
            counts[fault[0]] += 1
            fault, since = next(faults, None), 0.0
    finally:
        if process is not None and process.poll() is None:
            process.terminate()
            process.wait()
    failures = sweep.runs / "failures.jsonl"
    counts["again"] += len(failures.read_text().splitlines()) if failures.exists() else 0


def workers(runs: Path) -> list[int]:
    """Processes that train into this folder, by their number."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"rbve.sweep.worker" in words and os.fsencode(runs) in words:
            found.append(int(place.name))
    return sorted(found)


if __name__ == "__main__":
    main()
