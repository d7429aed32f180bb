"""How many core-hours the updates of an experiment take, by a cost measured here.

python tools/study_hours.py NAME [--scale desk] [--updates 200] [--work FOLDER]

Makes the quick scale's first recording of the experiment's first environment, trains each method
there for four times so many updates, and takes the CPU time from the end of the first quarter on,
so that compilation is left out. Runs three times as long are counted, beyond their first third,
which is an ordinary run. Recording and evaluation are not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rbve import backend
from rbve.data.manifest import fingerprint
from rbve.paper import experiments, recordings
from rbve.paper import reproduce as study
from rbve.paper.experiments import SCALES, Experiment, Method, Scale
from rbve.parts import DataRef
from rbve.spec import Spec
from rbve.sweep.run import run_jobs


def updates(experiment: Experiment, method: Method, scale: Scale) -> int:
    """Of one method, in all its runs of the scale."""
    settings = len(method.sweep[: scale.settings])
    ordinary = len(experiment.data) * scale.datasets * settings
    beyond = max(0, scale.longer - 1)  # of a longer run, which goes on from its ordinary one
    return scale.steps * (ordinary + beyond * len(experiment.data))


def seconds(job: Spec, count: int, work: Path) -> float:
    """Of CPU per update."""
    reached: list[float] = []
    own = job.varied(steps=4 * count, every=count, env=None, holdout=0.0)
    run_jobs([own], work / job.id, lambda progress: reached.append(time.process_time()))
    return (reached[-1] - reached[0]) / (3 * count)


def estimate(experiment: Experiment, scale: Scale, count: int, work: Path) -> list[tuple[str, ...]]:
    """method, milliseconds an update, millions of updates, core-hours; last, the sum."""
    sized, data = experiment.at(scale), experiment.data[0]
    short = recordings.recording(data, experiment.at(SCALES["quick"]), data.first)
    study.record_all(list(dict.fromkeys((short.online, short))), work)
    folder = short.folder(work)
    ref = DataRef(str(folder), keep=1.0, fingerprint=fingerprint(folder))
    lines, total = [], 0.0
    for method in experiment.methods:
        job = study.job(ref, data.env, method, method.sweep[0], sized, 0, experiment.spec)
        cost = seconds(job, count, work)
        number = updates(experiment, method, sized)
        hours = cost * number / 3600
        lines.append((method.algorithm, f"{1e3 * cost:.2f}", f"{number / 1e6:.2f}", f"{hours:.1f}"))
        total += hours
    return [*lines, ("all", "", "", f"{total:.1f}")]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--scale", default="desk", choices=SCALES)
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--work", type=Path)
    asked = parser.parse_args(arguments)
    backend.prepare()
    experiment = experiments.load(asked.name)
    if not isinstance(experiment, Experiment):
        sys.exit(f"{asked.name} trains nothing")
    with tempfile.TemporaryDirectory() as folder:
        work = asked.work or Path(folder)
        print("| method | ms an update | million updates | core-hours |\n|---|--:|--:|--:|")
        for line in estimate(experiment, SCALES[asked.scale], asked.updates, work):
            print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
