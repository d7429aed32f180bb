"""Centres over datasets, on the scale of their measure."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rbve.paper._pages import measures


def test_scores_are_averaged_as_they_are():
    found = measures.centre([0.0, 99.0], "normalised_return")
    reach = 12.7062047 * 49.5  # Student, of two values
    assert found[:3] == pytest.approx((49.5, 49.5 - reach, 49.5 + reach))
    assert found[3:] == (2, 0, False)


def test_errors_are_averaged_on_a_log_scale_and_turned_back():
    # log₁₀(1 + x): 0, 2 and 1: mean 1, standard error 1/√3.
    found = measures.centre([0.0, 99.0, 9.0], "overestimation")
    assert found.value == pytest.approx(9.0)
    reach = 4.3026527 / math.sqrt(3)
    assert (found.low, found.high) == (0.0, pytest.approx(10 ** (1 + reach) - 1))  # not below 0
    signed = measures.centre([0.0, 99.0, 9.0], "value_error")
    assert signed.low == pytest.approx(1 - 10 ** (reach - 1))


def test_signed_errors_keep_their_sign():
    # −1 and 2: mean ½; −2 alone: −99.
    assert measures.centre([-9.0, 99.0], "value_error").value == pytest.approx(math.sqrt(10) - 1)
    alone = measures.centre([-99.0], "value_error")
    assert alone.value == pytest.approx(-99.0)
    assert (alone.low, alone.high, alone.n) == (None, None, 1)


def test_runaway_errors_count_as_the_claims_count_them():
    # log₁₀: 30, 30, 0, 0.
    found = measures.centre([math.nan, math.inf, 0.0, 0.0], "overestimation")
    assert (found.value, found.n) == (pytest.approx(1e15), 4)
    assert found.point("x").note == "2 of 4 not finite, counted as 10³⁰"


def test_scores_that_are_not_finite_are_left_out_and_said():
    found = measures.centre([math.nan, math.inf, 5.0, 5.0], "return")
    assert (found.value, found.n, found.point("x").n) == (5.0, 2, 2)
    assert found.point("x").note == "2 of 4 not finite, left out"
    nothing = measures.centre([math.nan], "return")
    assert math.isnan(nothing.value)
    assert (nothing.n, nothing.text) == (0, "–")


def test_text_has_the_interval_where_there_is_one():
    assert measures.centre([0.0, 99.0], "return").text == "49.5 [−579, 678]"
    assert measures.centre([3.0], "return").text == "3.00"


def test_the_median_over_environments():
    tasks = {"a": np.array([0.0, 0.0]), "b": np.array([9.0, 9.0]), "c": np.array([999.0, math.nan])}
    found = measures.median_over(tasks, "overestimation")
    assert (found.value, found.n, found.runaway) == (pytest.approx(9.0), 6, 1)
    assert measures.median_over({**tasks, "b": np.array([1.0, 99.0])}, "return").value == 50.0
    assert measures.median_over({"a": np.array([math.nan])}, "return").n == 0


def test_words_for_n():
    assert measures.n_words([5, 5]) == "n = 5 datasets"
    assert measures.n_words([5, 2, 3]) == "n = 2 to 5 datasets"
