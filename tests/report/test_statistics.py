import math

import numpy as np
import pytest

from rbve.report.statistics import bootstrap_interval, estimate, finite, standard_error


def test_mean_error_and_median_by_hand():
    found = estimate([1.0, 2.0, 6.0])
    # deviations −2, −1, 3: variance 14 / 2 = 7
    assert found.n == 3
    assert found.mean == pytest.approx(3.0)
    assert found.error == pytest.approx(math.sqrt(7 / 3))
    assert found.median == 2.0


def test_interval_of_two_values_spans_both():
    # The mean of a resample is 0 or 1 with probability 1/4 each, far above 2.5%.
    assert bootstrap_interval(np.array([0.0, 1.0])) == (0.0, 1.0)


def test_interval_by_the_binomial_distribution():
    # The resampled mean is Binomial(4, 1/4): P(0) = 31.6%, P(4) = 0.4%, P(≥ 3) = 5.1%.
    assert bootstrap_interval(np.array([0.0, 4.0, 0.0, 0.0])) == (0.0, 3.0)


def test_interval_nears_the_normal_one():
    values = np.random.default_rng(3).normal(size=400)
    low, high = bootstrap_interval(values) or (0, 0)
    error = standard_error(values) or 0
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


def test_reproducible_in_any_order():
    values = np.random.default_rng(5).normal(size=30)
    assert bootstrap_interval(values) == bootstrap_interval(values[::-1])
    assert bootstrap_interval(values) != bootstrap_interval(values, seed=1)


def test_one_value_has_no_interval():
    assert estimate([2.5]) == (1, 2.5, None, None, None, 2.5)


def test_what_is_not_finite_is_left_out_and_counted():
    assert finite([1.0, None, math.nan, math.inf, -math.inf, 2.0]).tolist() == [1.0, 2.0]
    assert estimate([math.nan, None, 4.0]).n == 1
    nothing = estimate([math.nan])
    assert nothing.n == 0
    assert math.isnan(nothing.mean)
    assert nothing.low is None
