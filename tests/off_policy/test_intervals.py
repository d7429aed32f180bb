"""Intervals of a mean, against closed forms and by how often they hold it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rbve.off_policy import intervals


def test_student_by_hand() -> None:
    low, high = intervals.student(np.array([1.0, 2.0, 3.0]), 0.9)
    reach = 2.919986 / math.sqrt(3)  # t quantile with 2 degrees of freedom
    assert (low, high) == pytest.approx((2 - reach, 2 + reach), rel=1e-5)


def test_bernstein_by_hand() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    log = math.log(40)
    reach = math.sqrt(2 * 0.3 * log / 5) + 7 * log / (3 * 4)
    low, high = intervals.bernstein(values, 0.9)
    assert (low, high) == pytest.approx((0.6 - reach, 0.6 + reach))


def test_bootstrap_is_near_student_where_both_are_right() -> None:
    values = np.random.default_rng(0).normal(3, 1, 400)
    assert intervals.bootstrap(values) == pytest.approx(intervals.student(values), abs=0.01)
    assert intervals.bootstrap(values) == intervals.bootstrap(values)
    assert intervals.bootstrap(values, seed=1) != intervals.bootstrap(values)


@pytest.mark.parametrize("name", ["student", "bernstein"])
def test_holds_the_mean_as_often_as_it_says(name: str) -> None:
    rng, make = np.random.default_rng(1), intervals.METHODS[name]
    repeats, held = 400, 0
    for _ in range(repeats):
        low, high = make(rng.exponential(1.0, 60), 0.9)
        held += low <= 1.0 <= high
    share, error = held / repeats, math.sqrt(0.09 / repeats)
    assert share > 0.87 - 3 * error  # skewed and few: a little under 90%
    if name == "student":
        assert share < 0.9 + 3 * error


@pytest.mark.parametrize("name", intervals.METHODS)
def test_wider_with_level_narrower_with_episodes(name: str) -> None:
    rng, make = np.random.default_rng(2), intervals.METHODS[name]
    values = rng.uniform(size=800)

    def width(interval: tuple[float, float]) -> float:
        return interval[1] - interval[0]

    assert width(make(values, 0.99)) > width(make(values, 0.9)) > width(make(values, 0.5))
    assert width(make(values[:50], 0.9)) > width(make(values, 0.9))
    assert make(values[:1], 0.9) == (-math.inf, math.inf)
