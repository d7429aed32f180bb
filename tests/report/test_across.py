"""Statistics across tasks, against values worked out by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rbve.report import statistics as across


def test_interquartile_mean_cuts_a_quarter_at_each_end() -> None:
    assert across.interquartile_mean(np.array([100.0, 1, 2, 3, 4, 5, 6, -50])) == 3.5
    assert across.interquartile_mean(np.array([9.0, 1, 2])) == 4.0  # ⌊3/4⌋ = 0: nothing is cut
    assert across.interquartile_mean(np.array([0.0, 10, 20, 30, 1000])) == 20.0  # 10, 20, 30


def test_mean_and_median_of_tasks() -> None:
    tasks = [np.array([0.0, 2.0]), np.array([10.0]), np.array([3.0, 3.0, 6.0])]  # means 1, 10, 4
    assert across.mean_of_tasks(tasks) == 5.0
    assert across.median_of_tasks(tasks) == 4.0


def test_wins_count_ties_half() -> None:
    ours, theirs = np.array([1.0, 2.0]), np.array([1.0, 0.0, 3.0])
    # 1: ties 1, beats 0, loses to 3 → 1.5; 2: beats 1 and 0 → 2; of 6 pairs.
    assert across.wins(ours, theirs) == pytest.approx(3.5 / 6)


def test_probability_of_improvement_is_over_shared_tasks() -> None:
    ours = {"a": np.array([1.0, 2.0]), "b": np.array([5.0]), "only ours": np.array([9.0])}
    theirs = {"a": np.array([1.0, 0.0, 3.0]), "b": np.array([7.0])}
    found = across.probability_of_improvement(ours, theirs)
    assert found.value == pytest.approx((3.5 / 6 + 0) / 2)
    assert found.low <= found.value <= found.high
    other = across.probability_of_improvement(theirs, {k: ours[k] for k in ("a", "b")})
    assert other.value == pytest.approx(1 - found.value)
    with pytest.raises(ValueError, match="no task was run with both"):
        across.probability_of_improvement({"a": ours["a"]}, {"b": theirs["b"]})


def test_the_interval_resamples_within_tasks() -> None:
    """Two runs of one task and one of the other: all four equally likely resamples by hand."""
    scores = {"a": np.array([0.0, 4.0]), "b": np.array([10.0])}
    means = [np.mean([np.mean(pair), 10.0]) for pair in itertools.product([0.0, 4.0], repeat=2)]
    found = across.interval(scores, across.mean_of_tasks)
    assert found.value == 6.0
    assert (found.low, found.high) == (min(means), max(means)) == (5.0, 7.0)
    assert found.n == 3
    # Pooling the runs of all tasks would reach 0 and 10.


def test_intervals_are_seeded_and_do_not_depend_on_order() -> None:
    rng = np.random.default_rng(0)
    scores = {name: rng.normal(size=5) for name in "abc"}
    turned = {name: scores[name][::-1] for name in "cab"}
    one = across.interval(scores, across.pooled_iqm)
    assert one == across.interval(turned, across.pooled_iqm)
    assert one != across.interval(scores, across.pooled_iqm, seed=1)
    with pytest.raises(ValueError, match="at least one score for each task"):
        across.interval({"a": np.array([])}, across.pooled_iqm)


def test_performance_profile() -> None:
    scores = {"a": np.array([0.0, 1.0]), "b": np.array([2.0])}
    found = across.performance_profile(scores, np.array([-1.0, 0.0, 1.0, 2.0]))
    # Above −1: all. Above 0: half of a, all of b. Above 1: none of a, all of b. Above 2: none.
    assert [each.value for each in found] == [1.0, 0.75, 0.5, 0.0]
    assert (found[1].low, found[1].high) == (0.5, 1.0)
    assert found[0].n == 3


def test_coverage_of_the_interval() -> None:
    """Of 200 draws of three tasks with 8 runs, about 95% hold the true mean."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        scores = {name: rng.normal(mean, 1, 8) for name, mean in (("a", 0), ("b", 1), ("c", 5))}
        found = across.interval(scores, across.mean_of_tasks)
        held += found.low <= 2.0 <= found.high
    assert 165 <= held <= 199  # a percentile interval from 8 runs is a little narrow


def test_runs_are_resampled_within_their_dataset() -> None:
    one = across.interval({"a": [np.array([0.0, 4.0])]}, across.median_of_tasks)
    assert (one.value, one.low, one.high, one.n) == (2.0, 0.0, 4.0, 1)
    # Runs on a dataset agree: only which datasets are drawn matters, however many runs there are.
    two = across.interval({"a": [np.full(9, 1.0), np.full(9, 3.0)]}, across.median_of_tasks)
    assert (two.value, two.low, two.high, two.n) == (2.0, 1.0, 3.0, 2)
    profile = across.performance_profile({"a": [np.array([0.0, 4.0]), np.array([9.0])]}, np.ones(1))
    assert profile[0].value == 1.0  # the means of both datasets, 2 and 9, lie above 1


def test_no_interval_of_the_mean_where_a_task_has_one_dataset() -> None:
    found = across.mean_interval({"a": np.array([1.0, 2.0]), "b": [np.array([3.0, 5.0])]})
    assert found.value == (1.5 + 4) / 2
    assert np.isnan([found.low, found.high]).all()
