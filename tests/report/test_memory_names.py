"""With a memory DDQN is called R2D2, and R-DQN R-R2D2; the others keep their names."""

from __future__ import annotations

from typing import Any

from support.studies import finals_of, make_run

from rbve.paper._pages.gather import by_method
from rbve.report.summary import group
from rbve.rows import Run
from rbve.spec import Spec


def with_memory(run: Run, units: int = 64, **fields: Any) -> Run:
    spec = Spec.from_json(run.spec).varied(memory=units, **fields).to_json()
    return run._replace(spec=spec, job=f"{run.job}-{units}")


SCORED = {"normalised_return": 1.0, "return": 1.0}
RUNS = [make_run(name, final=SCORED) for name in ("rbve", "dqn", "rdqn", "bc")]
PLAIN = {"R-BVE", "DDQN", "R-DQN", "BC"}
RECURRENT = {"R-BVE", "R2D2", "R-R2D2", "BC"}


def test_in_a_study() -> None:
    assert {method.name for method in by_method(finals_of(RUNS))} == PLAIN
    found = by_method(finals_of([with_memory(run) for run in RUNS]))
    assert {method.name for method in found} == RECURRENT
    # No memory, whatever the field is set to or whether it is there.
    assert {m.name for m in by_method(finals_of([with_memory(run, 0) for run in RUNS]))} == PLAIN
    both = by_method(finals_of([RUNS[1], with_memory(RUNS[1])]))
    assert {method.name: len(own) for method, own in both.items()} == {"DDQN": 1, "R2D2": 1}


def test_in_a_table_of_runs() -> None:
    (problem,) = group([with_memory(run) for run in RUNS])
    assert {method.name for method in problem.methods} == RECURRENT
    (problem,) = group([*RUNS, with_memory(RUNS[1])])
    assert {method.name for method in problem.methods} == {
        "R-BVE", "DDQN memory=0", "R2D2 memory=64", "R-DQN", "BC",
    }  # fmt: skip
