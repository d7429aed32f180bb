"""Which setting of each method's sweep scored best in a tuning experiment, as lines to be frozen.

python tools/best_settings.py STUDY [--experiment minatar_tuning]

STUDY is a folder of `rbve reproduce` or of `rbve pack`. Prints lines of FROZEN
(rbve/paper/experiments/_minatar.py) with the mean score of the best setting, and of the others.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rbve import rows
from rbve.paper import experiments
from rbve.paper._pages.gather import Study, gather
from rbve.paper.experiments import Experiment
from rbve.paper.finals import LEARNING_RATE, SCORE, best_setting, by_setting, mean


def lines(study: Study, name: str) -> list[str]:
    """One for every method that was run with all its settings."""
    experiment = experiments.load(name)
    if not isinstance(experiment, Experiment):
        raise ValueError(f"{name} has no settings: it needs no data")
    finals, found = study.of(name), []
    for method in experiment.methods:
        own = [each for each in finals if each.algorithm == method.algorithm]
        if (best := best_setting(own)) is None:
            found.append(f"# {method.algorithm}: not run")
            continue
        varied = sorted({LEARNING_RATE, *(key for tried in method.sweep for key in tried)})
        settings = {key: json.loads(best)[key] for key in varied}
        scores = {key: mean(list(each.values())) for key, each in by_setting(own, SCORE).items()}
        rest = sorted((score for key, score in scores.items() if key != best), reverse=True)
        others = ", ".join(f"{score:.1f}" for score in rest)
        line = f'"{method.algorithm}": {json.dumps(settings)},  # {scores[best]:.1f}'
        found.append(f"{line}; others {others}" if others else line)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path)
    parser.add_argument("--experiment", default="minatar_tuning")
    asked = parser.parse_args()
    study = gather([asked.study], rows.find([asked.study]))
    if not study.of(asked.experiment):
        sys.exit(f"{asked.study}: no finished runs of {asked.experiment}")
    print("\n".join(lines(study, asked.experiment)))


if __name__ == "__main__":
    main()
