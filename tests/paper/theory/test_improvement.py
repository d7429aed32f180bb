import math
from fractions import Fraction

import numpy as np
import pytest

from rbve.paper.theory import _exact as exact
from rbve.paper.theory import _families as families
from rbve.paper.theory import improvement
from rbve.paper.theory._exact import END, MDP, Outcome
from rbve.paper.theory._families import FAMILIES, Example
from rbve.paper.theory.improvement import check_discounted, check_ending, summary

F = Fraction
LOW, HIGH = F(0), F(1)
LOSE, WIN = [Outcome(END, LOW)], [Outcome(END, HIGH)]


def go(state):
    return [Outcome(state)]


def example(moves, behaviour, gamma=HIGH):
    return Example(MDP(moves, gamma), [[F(k) for k in row] for row in behaviour], LOW, HIGH)


# One process per broken premise, each with its loss by hand; the others hold.
TENTH = [F(1, 10), F(9, 10)]
BROKEN = {
    # a ends well with chance .6; b leads where the good action is taken with chance .1.
    "stochastic": (
        example(
            [
                [[Outcome(END, HIGH, F(6, 10)), Outcome(END, LOW, F(4, 10))], go(1)],
                [WIN, LOSE],
            ],
            [TENTH, TENTH],
        ),
        F(4, 10),
        True,
    ),
    # Going round is worth as much as ending well, since the behaviour ends in the end.
    "cycles": (example([[go(0), WIN], [LOSE, WIN]], [TENTH, TENTH]), F(1), False),
    # a: two steps, the second rarely good: .9 · .1; b: three steps, surely good: .81; best: .9.
    "discounted": (
        example([[go(1), go(2)], [WIN, LOSE], [go(3), go(3)], [WIN, WIN]], [TENTH] * 4, F(9, 10)),
        F(9, 100),
        True,
    ),
    # ½ on the way, then nothing; or on to where 1 is rare.
    "rewards": (
        example([[[Outcome(2, F(1, 2))], go(1)], [WIN, LOSE], [LOSE, LOSE]], [TENTH] * 3),
        F(1, 2),
        True,
    ),
    "middle": (
        example([[[Outcome(END, F(1, 2))], go(1)], [WIN, LOSE]], [TENTH] * 2),
        F(1, 2),
        True,
    ),
    # The way to H is never taken, neither its first nor its second step: all values are L.
    "hopeless": (example([[LOSE, go(1)], [LOSE, go(2)], [LOSE, WIN]], [[1, 0]] * 3), F(1), False),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_premises_by_hand(name):
    process, loss, always = BROKEN[name]
    expected = [index != FAMILIES[name].broken for index in range(5)]
    assert families.premises(process) == expected
    found = check_ending(process)
    assert (found.violated, found.always, found.loss) == (True, always, loss)
    assert (found.margin < 0) if always else (found.margin == 0)


def test_the_lemma_by_hand():
    """The behaviour succeeds with chance .01 from state 0, and still leads the way."""
    process = example([[LOSE, go(1)], [WIN, LOSE]], [[F(9, 10), F(1, 10)], TENTH])
    assert families.premises(process) == [True] * 5
    found = check_ending(process)
    assert (found.violated, found.always, found.loss) == (False, False, 0)
    assert found.margin == F(1, 10)  # Q(0, b) = V(1) = .1 against 0; Q(1, a) = 1 against 0


@pytest.mark.parametrize("name", FAMILIES)
def test_members_break_exactly_their_premise(name):
    rng = np.random.default_rng(5)
    family = FAMILIES[name]
    for _ in range(20):
        process = families.draw(family, rng)
        assert families.premises(process) == [k != family.broken for k in range(5)]
        assert all(sum(row) == 1 for row in process.behaviour)
        assert all(
            sum(o.chance for o in outcomes) == 1 for a in process.mdp.moves for outcomes in a
        )


def test_a_lead_of_optimal_actions_is_optimality_where_nothing_comes_back():
    """Two ways to find a violation: by values of policies, and by the lead."""
    rng = np.random.default_rng(6)
    for name in ("full", "stochastic", "discounted", "rewards", "middle", "hopeless"):
        for _ in range(30):
            process = families.draw(FAMILIES[name], rng)
            table = exact.action_values(process.mdp, exact.evaluate(process.mdp, process.behaviour))
            best = exact.backups(process.mdp, exact.every_action(process.mdp), max)
            gaps = exact.gaps(table, exact.action_values(process.mdp, best))
            found = check_ending(process)
            assert found.violated == any(gap.size <= 0 for gap in gaps)
            assert found.always == any(gap.size < 0 for gap in gaps)


def test_chain_of_two_by_hand():
    # Q = ¼, ¾ and 5/4, 7/4: leads of ½, as shares ⅔ and 2/7.
    found = check_discounted(improvement.chain(2, F(1, 2)))
    assert found == (False, False, F(1, 2), F(2, 7), 0)


@pytest.mark.parametrize("gamma", [F(1, 10), F(9, 10), F(999, 1000)])
def test_chain_values_by_hyperbolic_cosines(gamma):
    """V_k = C cosh((k − ½) θ) with cosh θ = 1/γ solves the recursion and its left end."""
    mdp = improvement.chain(12, gamma)
    values = exact.evaluate(mdp, exact.uniform(mdp))
    theta = math.acosh(1 / gamma)
    for k, value in enumerate(values, start=1):
        ratio = math.cosh((k - 0.5) * theta) / math.cosh(0.5 * theta)
        assert float(value / values[0]) == pytest.approx(ratio, rel=1e-9)


def test_chain_ends():
    mdp = improvement.chain(3, F(1, 2))
    assert mdp.moves[0] == [[Outcome(0)], [Outcome(1)]]
    assert mdp.moves[1] == [[Outcome(0)], [Outcome(2)]]
    assert mdp.moves[2] == [[Outcome(1, F(1))], [Outcome(2, F(1))]]


def test_grid_moves_and_goal():
    mdp = improvement.grid(improvement.rectangle(2, 3), (0, 1), F(1, 2))
    # Cells 0 1 2 / 3 4 5; the goal is cell 1; left, right, up, down.
    assert [o[0].state for o in mdp.moves[1]] == [0, 2, 1, 4]
    assert [o[0].state for o in mdp.moves[3]] == [3, 4, 0, 3]
    assert {o[0].reward for o in mdp.moves[1]} == {1}
    assert {o[0].reward for o in mdp.moves[0] + mdp.moves[5]} == {0}


def test_left_pays_breaks_the_chain():
    """Of 9 states at γ = .99, by floating-point value iteration."""
    gamma, n = 0.99, 9
    reward = np.zeros(n)
    reward[0], reward[-1] = 0.5, 1.0
    left, right = np.maximum(np.arange(n) - 1, 0), np.minimum(np.arange(n) + 1, n - 1)
    random, best = np.zeros(n), np.zeros(n)
    for _ in range(5000):
        random = reward + gamma * (random[left] + random[right]) / 2
        best = reward + gamma * np.maximum(best[left], best[right])
    goes_left = random[left] > random[right]
    assert goes_left.any()
    values = np.zeros(n)
    for _ in range(5000):
        values = reward + gamma * values[np.where(goes_left, left, right)]
    found = check_discounted(improvement.chain(n, F(99, 100), F(1, 2)))
    assert found.violated
    assert found.always
    assert float(found.loss) == pytest.approx((best - values).max())


def test_walls_leave_one_region_with_the_goal():
    rng = np.random.default_rng(2)
    for _ in range(10):
        cells, goal = improvement.walls(rng, 5)
        assert goal == (4, 4)
        assert goal in cells
        assert 17 <= len(cells) < 25
        near = lambda a, b: abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1  # noqa: E731
        assert all(any(near(a, b) for b in cells) for a in cells)


def test_summary_by_hand():
    checks = [
        improvement.Check(False, False, F(1, 4), F(1, 2), F(0)),
        improvement.Check(True, False, F(0), F(0), F(1, 8)),
        improvement.Check(True, True, F(-1), F(-1, 3), F(3, 4)),
    ]
    found = {row.metric: (row.value, row.n) for row in summary(checks)}
    assert found == {
        "mdps": (3, 3),
        "violations": (2, 3),
        "violations/any": (1, 3),
        "margin": (-1, 3),
        "margin/share": (-1 / 3, 3),
        "loss": (0.75, 3),
    }


def test_lemmas_hold_and_premises_matter(improvement_runs):
    held = ["chain", "chain/biased", "grid/corner", "grid/any-goal"]
    held += [f"end/{name}" for name, family in FAMILIES.items() if family.broken is None]
    for name in held:
        run = improvement_runs[f"improvement/{name}"]
        assert run.last("violations") == 0, name
        assert run.last("margin") > 0, name
        assert run.last("loss") == 0, name
    for name in [f"end/{name}" for name in FAMILIES if f"end/{name}" not in held]:
        assert improvement_runs[f"improvement/{name}"].last("violations") > 0, name
    assert improvement_runs["improvement/chain/left-pays"].last("violations") > 0


def test_only_ties_break_the_lemma_without_an_end_or_without_hope(improvement_runs):
    for name in ("cycles", "hopeless"):
        assert improvement_runs[f"improvement/end/{name}"].last("violations/any") == 0


def test_chain_rows(improvement_runs):
    run = improvement_runs["improvement/chain"]
    assert run.last("mdps") == 19 * 9
    margins = {row.step: row.value for row in run.rows if row.metric == "margin/gamma=0.5"}
    assert margins[2] == 0.5
    assert sorted(margins) == list(range(2, 21))


def test_equal_seeds_give_equal_rows():
    family = FAMILIES["stochastic"]
    first = improvement.ending("stochastic", family, "quick", 0)
    assert improvement.ending("stochastic", family, "quick", 0) == first
    assert improvement.ending("stochastic", family, "quick", 1).rows != first.rows
