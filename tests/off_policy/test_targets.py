"""Policies as probabilities: trained ones by hand, others' checked, every fault named by place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.ope import process, record, state_of

from rbve.off_policy.log import DecisionLog
from rbve.off_policy.targets import Deployment, of_scores, probabilities

MADE = process(1, ends=0.2, limit=4)
DATA = record(MADE, 30)
STATE = state_of(DATA)
ROWS = MADE.policy[STATE]  # (R, A)
LOG = DecisionLog.of(DATA, MADE.gamma)
CUT = int(np.flatnonzero(LOG.cut)[1])
EPISODE = int(np.flatnonzero(LOG.lengths > 2)[1])
ROW = int(DATA.offsets[EPISODE]) + 2


def changed(row: int, values: Any) -> np.ndarray:
    table = ROWS.copy()
    table[row] = values
    return table


def test_acting_by_hand() -> None:
    scores = np.array([[1.0, 3.0, 2.0], [5.0, 0.0, 9.0]])
    legal = np.array([[True, True, True], [True, True, False]])
    greedy = of_scores(scores, legal, Deployment())
    np.testing.assert_array_equal(greedy, [[0, 1, 0], [1, 0, 0]])
    mixed = of_scores(scores, legal, Deployment(epsilon=0.3))
    np.testing.assert_allclose(mixed, [[0.1, 0.8, 0.1], [0.85, 0.15, 0]])
    soft = of_scores(scores, legal, Deployment(temperature=2.0))
    first = np.exp([0.5, 1.5, 1.0])
    second = np.exp([2.5, 0.0])
    np.testing.assert_allclose(soft, [first / first.sum(), [*(second / second.sum()), 0]])
    both = of_scores(scores, legal, Deployment(epsilon=0.3, temperature=2.0))
    np.testing.assert_allclose(both, 0.7 * soft + 0.3 * legal / legal.sum(axis=1, keepdims=True))


def test_large_scores_do_not_overflow() -> None:
    found = of_scores(np.array([[1e6, 0.0]]), np.ones((1, 2), bool), Deployment(temperature=0.1))
    np.testing.assert_array_equal(found, [[1, 0]])


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"epsilon": -0.1}, "epsilon is a share from 0 to 1; got -0.1"),
        ({"epsilon": 1.1}, "epsilon is a share"),
        ({"epsilon": float("nan")}, "epsilon is a share"),
        ({"temperature": -1.0}, "temperature is 0 or more; got -1"),
        ({"temperature": float("nan")}, "temperature is 0 or more"),
        ({"temperature": float("inf")}, "temperature is 0 or more"),
    ],
)
def test_acting_out_of_bounds(keywords: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Deployment(**keywords)


def test_words() -> None:
    assert Deployment().words == "greedy"
    assert Deployment(0.1).words == "greedy, ε 0.1"
    assert Deployment(0.1, 0.5).words == "softmax at 0.5, ε 0.1"


def test_a_table_of_rows_or_of_decisions() -> None:
    np.testing.assert_allclose(probabilities(ROWS, DATA), ROWS)
    by_decision = probabilities(ROWS[LOG.rows], DATA)
    np.testing.assert_allclose(by_decision[LOG.rows], ROWS[LOG.rows])
    np.testing.assert_allclose(by_decision[LOG.final_rows], ROWS[LOG.final_rows - 1])


def test_a_list_and_small_rounding_are_fine() -> None:
    rounded = np.round(ROWS, 4)
    found = probabilities(rounded.tolist(), DATA)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_functions_with_and_without_masks() -> None:
    def plain(observations: np.ndarray) -> np.ndarray:
        return MADE.policy[observations.argmax(axis=1)]

    def masked(observations: np.ndarray, legal: np.ndarray) -> np.ndarray:
        return legal / legal.sum(axis=1, keepdims=True)

    def with_keyword(observations: np.ndarray, *, sharp: float = 1.0) -> np.ndarray:
        return plain(observations)

    np.testing.assert_allclose(probabilities(plain, DATA), ROWS)
    np.testing.assert_allclose(probabilities(with_keyword, DATA), ROWS)
    uniform = MADE.legal[STATE] / MADE.legal[STATE].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities(masked, DATA), uniform)
    everything = replace(DATA, legal=None)
    np.testing.assert_allclose(probabilities(masked, everything), 1 / 3)


def test_rows_after_an_end_are_nobody_s() -> None:
    ended = int(np.flatnonzero(DATA.terminated)[0])
    found = probabilities(changed(DATA.offsets[ended + 1] - 1, np.nan), DATA)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found[LOG.rows], ROWS[LOG.rows])


@pytest.mark.parametrize(
    "table", [ROWS[:, :2], ROWS[:-3], ROWS[0], ROWS[None]], ids=["actions", "rows", "flat", "deep"]
)
def test_other_shapes(table: np.ndarray) -> None:
    shape = rf"have shape \({len(LOG.action)}, 3\), .* or \({len(ROWS)}, 3\) .*; got \("
    with pytest.raises(ValueError, match=shape) as caught:
        probabilities(table, DATA)
    assert "\n" not in str(caught.value)


FINAL = int(DATA.offsets[CUT + 1]) - 1
ILLEGAL = int(np.flatnonzero(~MADE.legal[STATE[LOG.rows]].all(axis=1))[5])


@pytest.mark.parametrize(
    ("row", "values", "message"),
    [
        (ROW, [-0.5, 0.5, 1.0], f"episode {EPISODE}, decision 2: a probability is negative"),
        (ROW, [np.nan, 0.5, 0.5], f"episode {EPISODE}, decision 2: a probability is negative or"),
        (ROW, [np.inf, 0, 0], f"episode {EPISODE}, decision 2: a probability is negative or no"),
        (ROW, [0.5, 0.2, 0.2], f"episode {EPISODE}, decision 2: probabilities sum to 0.9, not 1"),
        (ROW, [0, 0, 0], f"episode {EPISODE}, decision 2: probabilities sum to 0, not 1"),
        (
            int(LOG.rows[ILLEGAL]),
            (~MADE.legal[STATE[LOG.rows[ILLEGAL]]]).astype(float),
            f"episode {LOG.episode[ILLEGAL]}, decision {LOG.step[ILLEGAL]}: the policy takes an "
            "illegal action",
        ),
        # What follows a cut is a value of the policy there.
        (FINAL, [np.nan] * 3, f"episode {CUT}, final observation: a probability is negative"),
        (FINAL, [0.5, 0.2, 0.2], f"episode {CUT}, final observation: probabilities sum to 0.9"),
    ],
)
def test_no_probabilities(row: int, values: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        probabilities(changed(row, values), DATA)
    assert "\n" not in str(caught.value)


def test_words_are_no_numbers() -> None:
    with pytest.raises(ValueError, match="probabilities are numbers; got <U"):
        probabilities(ROWS.astype(str), DATA)


def test_a_table_does_not_act_otherwise() -> None:
    with pytest.raises(ValueError, match="of trained policies"):
        probabilities(ROWS, DATA, Deployment(epsilon=0.1))
