"""How long `rbve select` takes, and whether its fits are as fast as training.

    python benchmarks/selection.py --episodes 10000 --work select-benchmark

A log of the clinicians of ICU-Sepsis (extra `icu`), about 92,000 decisions among 25 actions with
masks; the default candidates in three stages, each judged with two fits. Beside it, in one process,
updates of fitted Q evaluation against those of DQN and BVE on the same log, by CPU time.
"""

import argparse
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

import rbve
from rbve import backend
from rbve.data.manifest import fingerprint
from rbve.spec import Spec
from rbve.sweep.run import run_jobs

_EVERY = 2_000


def seconds(data: rbve.Dataset, algorithm: str, work: Path) -> float:
    """Of CPU per update, from the end of the first interval on."""
    reached: list[float] = []
    job = Spec.of(
        path="log", fingerprint="log", algorithm=algorithm, steps=4 * _EVERY, every=_EVERY,
        holdout=0.0, n_step=1, seed=len(list(work.iterdir())),
    )  # fmt: skip
    run_jobs([job], work, lambda progress: reached.append(time.process_time()), {"log": data})
    return (reached[-1] - reached[0]) / (len(reached) - 1) / _EVERY


def rates(path: Path, work: Path, rounds: int) -> None:
    data = rbve.load(path)
    uniform = np.full((len(data.action), data.num_actions), 1 / data.num_actions, np.float32)
    judged = replace(data, policy=uniform)
    work.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[float]] = {"_fqe": [], "dqn": [], "bve": []}
    for _ in range(rounds):
        for name, values in found.items():
            values.append(seconds(judged if name == "_fqe" else data, name, work))
    for name in ("dqn", "bve"):
        ratios = [mine / own for own, mine in zip(found["_fqe"], found[name], strict=True)]
        print(f"FQE's updates per second / {name}'s: {median(ratios):.2f}x")
    print(f"FQE: {1 / median(found['_fqe']):,.0f} updates per second of CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path, default=Path("select-benchmark"))
    asked = parser.parse_args()
    backend.prepare()
    path = asked.work / "log"
    if not path.exists():
        played = rbve.record("icu_sepsis", path, asked.episodes, "clinicians")
        print(played)
    print(f"store {fingerprint(path)[:12]}")
    rates(path, asked.work / "rates", asked.rounds)
    shutil.rmtree(asked.work / "selected", ignore_errors=True)
    began = time.time()
    command = [sys.executable, "-m", "rbve.cli", "select", str(path), "--gamma", "1"]
    done = subprocess.run([*command, "--out", str(asked.work / "selected")], check=False)
    print(f"rbve select: {(time.time() - began) / 60:.1f} minutes, exit code {done.returncode}")


if __name__ == "__main__":
    main()
