"""Five clean datasets are judged fine: an audit that cries wolf is not read."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from support.tiers import fast_and_slow

from rbve.audit import Audit, audit
from rbve.data import Dataset

CLEAN = ("catch_log", "cartpole_log", "mountain_car_log", "bandit_log", "masked_log")
MADE_SLOWLY = ("cartpole_log", "mountain_car_log")  # an agent learns for as long as it records


@pytest.fixture(scope="module", params=fast_and_slow(CLEAN, {*CLEAN} - {*MADE_SLOWLY}))
def judged(request: pytest.FixtureRequest) -> tuple[Dataset, Audit]:
    dataset = request.getfixturevalue(request.param)
    return dataset, audit(dataset)


def test_nothing_is_found(judged: tuple[Dataset, Audit]) -> None:
    _, found = judged
    assert [finding.name for finding in found.findings] == []
    assert (found.verdict, found.exit_code) == ("fine", 0)


def test_counts_are_those_of_the_data(judged: tuple[Dataset, Audit]) -> None:
    dataset, found = judged
    decisions = int((dataset.action >= 0).sum())
    assert found.counts.transitions == decisions == sum(found.support.counts)
    assert found.counts.terminated + found.counts.truncated == dataset.num_episodes
    assert sum(found.counts.return_histogram.counts) == dataset.num_episodes
    assert sum(found.counts.lengths.counts) == dataset.num_episodes
    assert sum(found.weights.histogram.counts) == found.weights.rows == decisions
    assert sum(map(sum, found.support.cells)) == decisions
    assert found.counts.returns.mean == pytest.approx(float(np.mean(dataset.episode_return)))


def test_the_result_is_json(judged: tuple[Dataset, Audit]) -> None:
    content = judged[1].to_json()
    assert json.loads(json.dumps(content, allow_nan=False)) == json.loads(json.dumps(content))
    assert content["verdict"] == "fine"
    assert content["episodes"] == judged[0].num_episodes


def test_the_same_seed_gives_the_same_result(walk_log: Dataset) -> None:
    assert audit(walk_log, seed=3) == audit(walk_log, seed=3)


def test_a_walk_is_clean_too(walk_log: Dataset) -> None:
    found = audit(walk_log)
    assert found.findings == []
    assert found.shift.verdicts == {"late": "ruled out", "early": "ruled out"}


def test_no_discount_has_no_horizon(walk_log: Dataset) -> None:
    found = audit(walk_log, gamma=1.0)
    assert math.isinf(found.weights.horizon)
    assert found.to_json()["weights"]["horizon"] is None
    assert found.weights.seen_from_start == pytest.approx(1.0)


@pytest.mark.parametrize(("gamma", "beta"), [(1.5, 0.5), (-0.1, 0.5), (0.9, 0.0), (0.9, -1.0)])
def test_impossible_settings(walk_log: Dataset, gamma: float, beta: float) -> None:
    with pytest.raises(ValueError, match="must"):
        audit(walk_log, gamma, beta)
