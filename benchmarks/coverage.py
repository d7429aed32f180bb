"""How often do intervals of importance sampling hold? Many logs of ICU-Sepsis, nothing fitted.

    python benchmarks/coverage.py --episodes 1000 --logs 20 --policies 200 --seed 1

Policies are those of benchmarks/ope.py. What one log of it shows varies from log to log, since all
its policies share its luck; what needs no fit can be had for many. Of every estimator: the share of
policies that pass the gates of weights, and of those how often the 90% interval holds the exact
value and how far the estimate is off; "without the gate" leaves that of the known value out.
"""

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from ope import policies

from rbve import backend
from rbve.envs import icu_sepsis
from rbve.evaluation import exact
from rbve.off_policy import estimators, gates, intervals
from rbve.off_policy.case import OpeCase
from rbve.off_policy.log import DecisionLog

NAMES = ("wis", "wpdis", "trajectory_is", "pdis")


class Found(NamedTuple):
    passed: bool  # the gates of weights
    known: bool  # the gate of the known value, where there is one
    held: bool
    error: float


def judged(log: DecisionLog, table: np.ndarray, truth: float) -> Iterator[Found]:
    """By estimator."""
    assert log.propensity is not None
    case = OpeCase(log, table, log.propensity)
    every = (*gates.weight_gates(case), *gates.horizon_gate(case))
    passed = all(gate.passed for gate in every)
    for name in NAMES:
        file = estimators.load(name)
        known = True
        if file.ESTIMATOR.unheld:
            known = gates.known_value_gate(case, file.estimate, name).passed
        values = file.estimate(case)
        low, high = intervals.student(values)
        yield Found(passed, known, low <= truth <= high, abs(float(values.mean()) - truth))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1_000)
    parser.add_argument("--logs", type=int, default=20)
    parser.add_argument("--policies", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    backend.prepare()
    known = icu_sepsis.tables()
    tables = policies(asked.policies, asked.seed)
    truth = [exact.value(known.mdp, table) for table in tables.values()]
    found = []
    for number in range(asked.logs):
        played = exact.sample_log(
            known.mdp, known.admissible_clinicians, asked.episodes,
            [asked.seed, asked.episodes, number + 1], known.features.astype(np.float32),
            icu_sepsis.ACTIONS,
        )  # fmt: skip
        log = DecisionLog.of(played.dataset, 1.0)
        state = played.state[log.rows]
        found.append(
            [list(judged(log, table[state], value))
             for table, value in zip(tables.values(), truth, strict=True)]
        )  # fmt: skip
    every = np.array(found)  # (logs, policies, estimators, fields)
    print(f"{asked.logs} logs of {asked.episodes:,} episodes, {len(tables)} policies")
    for place, name in enumerate(NAMES):
        passed, holds, held, error = np.moveaxis(every[:, :, place], -1, 0)
        label = estimators.load(name).ESTIMATOR.label
        kinds = {"": passed * holds > 0, " without the gate": passed > 0}
        for words, chosen in kinds.items():
            if words and (holds > 0).all():
                continue  # there is no such gate
            print(
                f"  {label + words:24s} pass {chosen.mean():.0%}, hold {held[chosen].mean():.1%}, "
                f"error {error[chosen].mean():.4f}"
            )


if __name__ == "__main__":
    main()
