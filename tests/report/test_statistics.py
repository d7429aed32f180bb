import math

import numpy as np
import pytest

from rbve.report.statistics import (
    estimate,
    finite,
    mean_interval,
    standard_error,
    student_interval,
    student_quantile,
)


def test_mean_error_and_median_by_hand():
    found = estimate([1.0, 2.0, 6.0])
    # deviations −2, −1, 3: variance 14 / 2 = 7
    assert found.n == 3
    assert found.mean == pytest.approx(3.0)
    assert found.error == pytest.approx(math.sqrt(7 / 3))
    assert found.median == 2.0
    assert (found.low, found.high) == pytest.approx(
        (3 - 4.302653 * math.sqrt(7 / 3), 3 + 4.302653 * math.sqrt(7 / 3))
    )


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [
        (1, 12.7062),
        (2, 4.3027),
        (3, 3.1824),
        (4, 2.7764),
        (9, 2.2622),
        (30, 2.0423),
        (120, 1.9799),
    ],
)
def test_quantiles_of_students_distribution(freedom, quantile):
    assert student_quantile(freedom) == pytest.approx(quantile, abs=5e-5)


def test_the_quantile_nears_the_normal_one():
    assert student_quantile(100_000) == pytest.approx(1.95996, abs=5e-5)
    with pytest.raises(ValueError, match="degree of freedom"):
        student_quantile(0)


def test_the_interval_of_two_values_is_wide():
    # mean ½, standard error ½
    assert student_interval(np.array([0.0, 1.0])) == pytest.approx((0.5 - 6.3531, 0.5 + 6.3531))


def test_runs_on_one_dataset_are_averaged_first():
    """Two datasets with means 1 and 5, whatever the number of runs on each."""
    found = estimate([0.0, 2.0, 5.0, 5.0, 5.0, 5.0], ["a", "a", "b", "b", "b", "b"])
    assert (found.n, found.datasets, found.over) == (6, 2, "datasets")
    assert found.mean == 3.0
    assert found.error == 2.0  # of 1 and 5
    assert (found.low, found.high) == pytest.approx((3 - 2 * 12.7062, 3 + 2 * 12.7062), abs=1e-3)
    assert found.median == 5.0  # over runs


def test_with_one_dataset_the_interval_is_over_its_runs_and_says_so():
    found = estimate([1.0, 2.0, 6.0], ["a", "a", "a"])
    assert (found.datasets, found.over) == (1, "runs")
    assert (found.low, found.high) == estimate([1.0, 2.0, 6.0])[3:5]
    assert estimate([1.0, 2.0, 6.0]).over == "datasets"


def coverage(datasets, seeds, spread, draws=2000):
    """How often the interval holds the mean, 0; datasets vary by 1, runs on one by `spread`."""
    rng = np.random.default_rng(7)
    names = np.repeat(np.arange(datasets), seeds).tolist()
    held = 0
    for _ in range(draws):
        means = rng.normal(size=(datasets, 1))
        found = estimate((means + rng.normal(0, spread, (datasets, seeds))).ravel(), names)
        held += found.low <= 0 <= found.high
    return held / draws


@pytest.mark.parametrize(
    ("datasets", "seeds"),
    [(3, 5), (4, 1), (5, 1), (2, 1)],  # resampled runs cover 45%, 82%, 84% and 50%
)
def test_intervals_cover_what_they_say(datasets, seeds):
    assert 0.93 <= coverage(datasets, seeds, 0.3) <= 0.97


def test_the_mean_over_kinds_of_data_is_covered_too():
    """Three tasks of 4 or 5 datasets, of which one varies ten times as much as the others."""
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(2000):
        sizes = {"a": (0, 1, 5), "b": (3, 0.1, 4), "c": (6, 0.1, 5)}
        found = mean_interval({name: rng.normal(*each) for name, each in sizes.items()})
        held += found.low <= 3 <= found.high
    assert 0.93 <= held / 2000 <= 0.98


def test_welch_by_hand():
    found = mean_interval({"a": np.array([0.0, 2.0]), "b": np.array([10.0, 10.0, 10.0])})
    # Of a: mean 1, variance of the mean 1; b adds nothing: half of it, one degree of freedom.
    assert found.value == 5.5
    assert (found.low, found.high) == pytest.approx(
        (5.5 - 12.7062 / 2, 5.5 + 12.7062 / 2), abs=1e-4
    )
    assert (found.n, found.fewest) == (5, 2)
    alone = mean_interval({"a": np.array([0.0, 2.0]), "b": np.array([10.0])})
    assert alone.value == 5.5
    assert math.isnan(alone.low)
    assert math.isnan(alone.high)


def test_interval_nears_the_normal_one():
    values = np.random.default_rng(3).normal(size=400)
    low, high = student_interval(values) or (0, 0)
    error = standard_error(values) or 0
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


def test_reproducible_in_any_order():
    values = np.random.default_rng(5).normal(size=30)
    names = ["a", "b", "c"] * 10
    assert estimate(values, names) == estimate(values[::-1], names[::-1])


def test_one_value_has_no_interval():
    assert estimate([2.5]) == (1, 2.5, None, None, None, 2.5, 1, None)


def test_what_is_not_finite_is_left_out_and_counted():
    assert finite([1.0, None, math.nan, math.inf, -math.inf, 2.0]).tolist() == [1.0, 2.0]
    assert estimate([math.nan, None, 4.0]).n == 1
    assert estimate([math.nan, 1.0, 3.0], ["a", "b", "b"]).over == "runs"
    nothing = estimate([math.nan])
    assert nothing.n == 0
    assert math.isnan(nothing.mean)
    assert nothing.low is None
