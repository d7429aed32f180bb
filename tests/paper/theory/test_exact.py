from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from rbve.paper.theory import _exact as exact
from rbve.paper.theory import _families as families
from rbve.paper.theory._exact import END, MDP, Outcome

F = Fraction
HALF = F(1, 2)


def two_states(gamma=HALF):
    """The chain of two states by hand: left, right; both exits of the second pay 1."""
    first = [[Outcome(0)], [Outcome(1)]]
    second = [[Outcome(0, F(1))], [Outcome(1, F(1))]]
    return MDP([first, second], gamma)


def test_values_by_hand():
    # ¾ V1 = ¼ V2 and ¾ V2 = 1 + ¼ V1
    mdp = two_states()
    values = exact.evaluate(mdp, exact.uniform(mdp))
    assert values == [HALF, F(3, 2)]
    assert exact.action_values(mdp, values) == [[F(1, 4), F(3, 4)], [F(5, 4), F(7, 4)]]


def test_values_of_a_certain_policy():
    mdp = two_states(F(9, 10))
    assert exact.evaluate(mdp, exact.only(mdp, [1, 1])) == [9, 10]
    assert exact.evaluate(mdp, exact.only(mdp, [0, 0])) == [0, 1]


def test_optimal_by_hand_from_any_start():
    expected = [[F(81, 10), 9], [F(91, 10), 10]]
    for start in product((0, 1), repeat=2):
        assert exact.optimal(two_states(F(9, 10)), [[k] for k in start]) == expected


def test_rational_values_equal_floating_ones():
    rng = np.random.default_rng(0)
    for name in ("stochastic", "cycles", "discounted", "rewards"):
        mdp, behaviour, _, _ = families.draw(families.FAMILIES[name], rng)
        count = len(mdp.moves)
        step, reward = np.zeros((count, count)), np.zeros(count)
        for s, k in product(range(count), range(len(mdp.moves[0]))):
            for outcome in mdp.moves[s][k]:
                share = float(behaviour[s][k] * outcome.chance)
                reward[s] += share * float(outcome.reward)
                if outcome.state != END:
                    step[s, outcome.state] += share
        expected = np.linalg.solve(np.eye(count) - float(mdp.gamma) * step, reward)
        found = [float(value) for value in exact.evaluate(mdp, behaviour)]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_backups_equal_the_best_and_worst_of_all_policies():
    rng = np.random.default_rng(1)
    found = 0
    while found < 10:
        mdp = families.draw(families.FAMILIES["stochastic"], rng).mdp
        if len(mdp.moves) > 5:
            continue
        found += 1
        actions = range(len(mdp.moves[0]))
        every = [
            exact.evaluate(mdp, exact.only(mdp, choice))
            for choice in product(actions, repeat=len(mdp.moves))
        ]
        allowed = exact.every_action(mdp)
        columns = list(zip(*every, strict=True))
        assert exact.backups(mdp, allowed, max) == [max(column) for column in columns]
        assert exact.backups(mdp, allowed, min) == [min(column) for column in columns]


def test_going_round_for_ever_is_worth_nothing():
    mdp = MDP([[[Outcome(0)], [Outcome(END, F(1))]]], F(1))
    assert exact.evaluate(mdp, exact.uniform(mdp)) == [1]
    assert exact.backups(mdp, [[0, 1]], max) == [1]
    assert exact.backups(mdp, [[0, 1]], min) == [0]


def test_greedy_keeps_ties():
    assert exact.greedy([[F(1), F(2), F(2)], [F(0), F(-1), F(-2)]]) == [[1, 2], [0]]


@pytest.mark.parametrize(
    ("behaviour", "size", "share"),
    [
        ([F(1), F(4), F(3)], F(1), F(1, 4)),  # 4 against 3
        ([F(5), F(4), F(3)], F(-1), F(-1, 5)),
        ([F(4), F(4), F(3)], F(0), F(0)),
    ],
)
def test_gap_by_hand(behaviour, size, share):
    """Action 1 alone is optimal in the first state; every action in the second."""
    best = [[F(0), F(9), F(8)], [F(1), F(1), F(1)]]
    (gap,) = exact.gaps([behaviour, behaviour], best)
    assert gap == (size, share)
