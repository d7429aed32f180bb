"""The experiments at their quick scale, run once."""

from __future__ import annotations

import pytest

from rbve.rows import Run


def by_job(runs: list[Run]) -> dict[str, Run]:
    found = {run.job: run for run in runs}
    assert len(found) == len(runs), "two runs share a job"
    return found


@pytest.fixture(scope="session")
def divergence_runs() -> dict[str, Run]:
    from rbve.paper.theory import divergence

    return by_job(divergence.run("quick"))


@pytest.fixture(scope="session")
def extrapolation_runs() -> dict[str, Run]:
    from rbve.paper.theory import extrapolation

    return by_job(extrapolation.run("quick"))


@pytest.fixture(scope="session")
def improvement_runs() -> dict[str, Run]:
    from rbve.paper.theory import improvement

    return by_job(improvement.run("quick"))


@pytest.fixture(scope="session")
def gridworld_runs() -> dict[str, Run]:
    from rbve.paper.theory import gridworld

    return by_job(gridworld.run("quick"))
