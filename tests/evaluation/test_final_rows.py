"""Final figures: equal weights to all evaluations that measured something."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rbve.data import Dataset, Episode
from rbve.evaluation.rollout import final_rows
from rbve.policy.trained import averaged
from rbve.rows import Row
from rbve.training.measures import facts


def test_an_evaluation_that_measured_nothing_does_not_count() -> None:
    nothing = (math.nan, 0)  # say, every episode was cut
    evaluations = [
        {"return": (1.0, 4), "value_error": nothing},
        {"return": (5.0, 12), "value_error": (-3.0, 2)},
        {"return": (6.0, 4), "value_error": nothing, "normalised_return": (7.0, 4)},
    ]
    assert final_rows(90, evaluations) == [
        Row(90, "final/return", 4.0, 20),
        Row(90, "final/value_error", -3.0, 2),
        Row(90, "final/normalised_return", 7.0, 4),
    ]


def test_fragments_do_not_tell_the_mean_return() -> None:
    """Of 10 and 1 steps that pay 1 each: mean 5.5, and 9.2 over fragments of one step."""
    whole = [Episode.from_steps(np.zeros((n + 1, 1)), [0] * n, [1.0] * n, True) for n in (10, 1)]
    assert facts(Dataset.from_episodes(whole, 2), None)["behaviour_return"] == 5.5
    cut = [
        Episode.from_steps(np.zeros((2, 1)), [0], [1.0], False)._replace(
            complete=False, episode_return=float(n)
        )
        for n in (10, 1)
        for _ in range(n)
    ]
    found = facts(Dataset.from_episodes(cut, 2), None)
    assert (found["behaviour_return"], found["best_return"]) == (None, 10)


def test_nothing_measured_is_said() -> None:
    (row,) = final_rows(90, [{"value_error": (math.nan, 0)}] * 2)
    assert math.isnan(row.value)
    assert row.n == 0
    assert final_rows(90, []) == []


@pytest.mark.parametrize(
    ("steps", "every", "wanted", "last"),
    [(100, 5, 5, 5), (100, 10, 5, 5), (100, 20, 5, 2), (100, 30, 5, 2), (9, 9, 5, 1), (9, 4, 1, 1)],
)
def test_none_of_the_first_half(steps: int, every: int, wanted: int, last: int) -> None:
    assert averaged(steps, every, wanted) == last
