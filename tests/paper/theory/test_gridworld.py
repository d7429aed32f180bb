import numpy as np
import pytest

from rbve.paper.theory import gridworld
from rbve.paper.theory.gridworld import LAYOUT, arrives, build, evaluate, policies


def values(layout, trap=-1.0):
    world = build(layout, trap)
    return {name: evaluate(world, policy) for name, policy in policies(world).items()}


def test_one_cell_before_the_goal_by_hand():
    # V = ¼ · 50 + ¾ γ V
    found = values(["SG"])
    assert found["random"][0] == pytest.approx(12.5 / (1 - 0.75 * 0.97))
    assert found["one step"][0] == 50
    assert found["optimal"][0] == 50
    assert found["random"][1] == 0


def test_staying_in_a_trap_pays_again():
    # V = ¼ · 50 + ¾ (γ V − 1)
    assert values(["TG"])["random"][0] == pytest.approx(11.75 / (1 - 0.75 * 0.97))


def test_optimal_goes_around_or_through_by_hand():
    # Through the trap −1 + .97 · 50 = 47.5; around it, four steps: .97³ · 50 = 45.63.
    found = values(["STG", "..."])
    assert found["optimal"][0] == pytest.approx(47.5)
    # At −10 the way around wins: 38.5 against 45.63.
    assert values(["STG", "..."], -10.0)["optimal"][0] == pytest.approx(0.97**3 * 50)


def test_moves():
    world = build(["S.T", "..G"])
    assert world.after[4].tolist() == [3, 5, 1, 4]
    assert world.after[0].tolist() == [0, 1, 0, 3]
    assert world.reward[1].tolist() == [0, -1, 0, 0]
    assert world.reward[2].tolist() == [0, -1, -1, 50]
    assert (world.after[5] == 5).all()


def test_a_policy_that_hides_does_not_arrive():
    world = build(["S.G"])
    left, right = np.eye(4)[[0, 0, 0]], np.eye(4)[[1, 1, 1]]
    assert not arrives(world, left)
    assert arrives(world, right)


def value_iteration(best_only):
    """Independent of the linear solver: sweeps over cells in plain Python."""
    cells = {(r, c): sign for r, row in enumerate(LAYOUT) for c, sign in enumerate(row)}
    found = dict.fromkeys(cells, 0.0)
    pays = {"T": -1.0, "G": 50.0}
    for _ in range(600):
        for (r, c), sign in cells.items():
            if sign == "G":
                continue
            near = [(r, c - 1), (r, c + 1), (r - 1, c), (r + 1, c)]
            ends = [cell if cell in cells else (r, c) for cell in near]
            worth = [pays.get(cells[cell], 0.0) + 0.97 * found[cell] for cell in ends]
            found[r, c] = max(worth) if best_only else sum(worth) / 4
    return found


def read(run, start):
    return {
        tuple(map(int, row.metric.split("/")[1:])): row.value
        for row in run.rows
        if row.metric.startswith(start)
    }


@pytest.mark.parametrize(("name", "best_only"), [("random", False), ("optimal", True)])
def test_values_by_value_iteration(gridworld_runs, name, best_only):
    found = read(gridworld_runs[f"gridworld/{name}"], "value/")
    expected = value_iteration(best_only)
    assert found.keys() == expected.keys()
    for cell, value in expected.items():
        assert found[cell] == pytest.approx(value, abs=1e-4), cell


def test_one_step_follows_the_values_of_the_random_policy(gridworld_runs):
    """Its arrows, followed by hand from the start, add up to its value."""
    run = gridworld_runs["gridworld/one-step"]
    random = value_iteration(False)
    actions = read(run, "action/")
    pays = {"T": -1.0, "G": 50.0}
    r = c = 0
    total, discount = 0.0, 1.0
    while LAYOUT[r][c] != "G":
        near = [(r, c - 1), (r, c + 1), (r - 1, c), (r + 1, c)]
        ends = [cell if cell in random else (r, c) for cell in near]
        worth = [pays.get(LAYOUT[a][b], 0.0) + 0.97 * random[a, b] for a, b in ends]
        taken = int(actions[r, c])
        assert worth[taken] == pytest.approx(max(worth), abs=1e-4)
        r, c = ends[taken]
        total += discount * pays.get(LAYOUT[r][c], 0.0)
        discount *= 0.97
    assert run.last("start") == pytest.approx(total)


def test_the_pattern(gridworld_runs):
    random, one, best = (
        gridworld_runs[f"gridworld/{name}"] for name in ("random", "one-step", "optimal")
    )
    for measure in ("start", "mean"):
        assert random.last(measure) < 0
        assert 0.95 * best.last(measure) < one.last(measure) < best.last(measure) - 0.5
    assert one.last("below_optimal") == 17
    assert one.last("worst/share") > 0.1
    assert best.last("below_optimal") == 0


def test_layouts_by_hand():
    """Nothing in the way: optimal. A trap of −100 beside the goal: one step keeps away from it."""
    free = ["S..", "..G"]
    rows = gridworld.layout_rows([free], -1.0)
    assert {row.metric: (row.value, row.n) for row in rows} == {
        "close": (1, 1),
        "optimal": (1, 1),
        "reaches": (1, 1),
        "random_below_0": (0, 1),
    }
    feared = ["S....", "....T", "....G"]
    found = {row.metric: row.value for row in gridworld.layout_rows([free, feared], -100.0)}
    assert found == {"close": 0.5, "optimal": 0.5, "reaches": 0.5, "random_below_0": 0.5}


def test_dear_traps_end_the_pattern(gridworld_runs):
    close = [gridworld_runs[f"gridworld/layouts/trap={t}"].last("close") for t in ("-0.1", "-10")]
    assert close[0] > 0.9
    assert close[1] < 0.3


def test_equal_seeds_give_equal_rows(gridworld_runs):
    again = {run.job: run for run in gridworld.run("quick")}
    assert again == gridworld_runs
    other = {run.job: run for run in gridworld.run("quick", seed=1)}
    name = "gridworld/layouts/trap=-1"
    assert other[name].rows != again[name].rows
