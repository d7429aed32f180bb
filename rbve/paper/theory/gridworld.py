"""One greedy step in a grid world: far above random, close to optimal, not optimal (appendix B).

The paper's layout is not in its text; this one is our own, picked among random ones, so only the
pattern is claimed: random ≪ one step ≈ optimal. The values of a random walk count the traps it
would stumble into later, so one greedy step on them errs where the optimal policy does not.
Random layouts show how often the pattern holds, and that dear traps end it: one step then hides
from them for ever.

    close     one step has at least NEAR of the optimal value at the start
    reaches   one step arrives at the goal from the start
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rbve.paper.theory import check_scale
from rbve.rows import Row, Run

QUESTION = (
    "In a grid world with traps, how far is one greedy step on the values of a random policy "
    "from optimal?"
)
_GAMMA = 0.97
_GOAL, _TRAP = 50.0, -1.0  # what a step that ends in the cell pays; the goal ends the episode
LAYOUT = (
    "S.....T..",
    "TTT..TT..",
    "..T......",
    "....TTT..",
    "T.T......",
    "TT.TT...G",
)
_MOVES = ((0, -1), (0, 1), (-1, 0), (1, 0))  # left, right, up, down; into the border is staying
_POLICIES = ("random", "one step", "optimal")
# Random layouts: start and goal as above, so many of each kind, chance of a trap in a cell.
_LAYOUTS, _TRAPS = {"quick": 50, "desk": 500}, 0.2
_TRAP_REWARDS = (-0.1, -0.3, -1.0, -3.0, -10.0)
_NEAR, _ROUNDING = 0.95, 1e-9

Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class _World(NamedTuple):
    """Cells in reading order. The goal is a cell that nothing leaves and that is worth 0."""

    shape: tuple[int, int]
    after: _Ints  # (cells, 4)
    reward: Floats  # (cells, 4)
    goal: int


def build(layout: Sequence[str], trap: float = _TRAP) -> _World:
    rows, columns = len(layout), len(layout[0])
    cells = "".join(layout)
    pays = np.array([{"T": trap, "G": _GOAL}.get(cell, 0.0) for cell in cells])
    after = np.zeros((len(cells), len(_MOVES)), np.int64)
    for k, (r, c) in enumerate(np.ndindex(rows, columns)):
        for a, (dr, dc) in enumerate(_MOVES):
            inside = 0 <= r + dr < rows and 0 <= c + dc < columns
            after[k, a] = (r + dr) * columns + c + dc if inside else k
    goal = cells.index("G")
    after[goal] = goal
    reward = pays[after]
    reward[goal] = 0.0
    return _World((rows, columns), after, reward, goal)


def evaluate(world: _World, policy: Floats) -> Floats:
    """V = r + γ P V of a policy (cells, 4)."""
    cells = len(world.after)
    step = np.zeros((cells, cells))
    np.add.at(step, (np.arange(cells)[:, None], world.after), policy)
    return np.linalg.solve(np.eye(cells) - _GAMMA * step, (policy * world.reward).sum(axis=1))


def _action_values(world: _World, values: Floats) -> Floats:
    return world.reward + _GAMMA * values[world.after]


def greedy(q: Floats) -> Floats:
    """The policy that takes the first action of highest value, up to rounding."""
    first = (q >= q.max(axis=1, keepdims=True) - _ROUNDING).argmax(axis=1)
    return np.eye(len(_MOVES))[first]


def optimal(world: _World, policy: Floats) -> Floats:
    while True:
        better = greedy(_action_values(world, evaluate(world, policy)))
        if (better == policy).all():
            return policy
        policy = better


def policies(world: _World) -> dict[str, Floats]:
    random = np.full(world.after.shape, 1 / len(_MOVES))
    one = greedy(_action_values(world, evaluate(world, random)))
    return dict(zip(_POLICIES, (random, one, optimal(world, one)), strict=True))


def arrives(world: _World, policy: Floats, start: int = 0) -> bool:
    """Whether a policy without chance reaches the goal."""
    place = start
    for _ in range(len(policy)):
        place = int(world.after[place, policy[place].argmax()])
    return place == world.goal


def layout_rows(layouts: Sequence[Sequence[str]], trap: float) -> list[Row]:
    """Shares of the layouts whose optimal policy reaches the goal from the start."""
    found: dict[str, list[bool]] = {"close": [], "optimal": [], "reaches": [], "random_below_0": []}
    for layout in layouts:
        world = build(layout, trap)
        own = policies(world)
        if not arrives(world, own["optimal"]):
            continue
        random, one, best = (float(evaluate(world, own[name])[0]) for name in _POLICIES)
        found["close"].append(one >= _NEAR * best)
        found["optimal"].append(one >= best - _ROUNDING)
        found["reaches"].append(arrives(world, own["one step"]))
        found["random_below_0"].append(random < 0)
    return [Row(0, name, float(np.mean(each)), len(each)) for name, each in found.items()]


def _policy_rows(world: _World, policy: Floats, best: Floats) -> list[Row]:
    values = evaluate(world, policy)
    free = np.arange(len(values)) != world.goal
    certain = policy.max(axis=1) == 1
    rows = []
    for k, (r, c) in enumerate(np.ndindex(*world.shape)):
        rows.append(Row(0, f"value/{r}/{c}", float(values[k]), 1))
        action = int(policy[k].argmax()) if certain[k] and free[k] else -1
        rows.append(Row(0, f"action/{r}/{c}", float(action), 1))
    short = (best - values)[free]
    worst = int(short.argmax())
    n = int(free.sum())
    summary = {
        "start": (float(values[0]), 1),
        "mean": (float(values[free].mean()), n),  # over cells other than the goal
        "below_optimal": (float((short > _ROUNDING).sum()), n),  # cells
        "worst": (float(short[worst]), n),  # largest loss in a cell
        "worst/share": (float(short[worst] / best[free][worst]), n),  # of the optimal value there
    }
    return [*rows, *(Row(0, name, value, n) for name, (value, n) in summary.items())]


def run(scale: str = "desk", seed: int = 0) -> list[Run]:
    scale = check_scale(scale)
    world = build(LAYOUT)
    own = policies(world)
    best = evaluate(world, own["optimal"])
    spec: dict[str, Any] = {"experiment": "gridworld", "gamma": _GAMMA, "goal": _GOAL}
    facts = {"question": QUESTION, "layout": list(LAYOUT), "start": "upper left"}
    facts["note"] = "our own layout, picked among random ones; the paper's is not in its text"
    runs = []
    for name, policy in own.items():
        content = {**spec, "trap": _TRAP, "layout": list(LAYOUT), "policy": name}
        job = f"gridworld/{name.replace(' ', '-')}"
        runs.append(Run(job, content, facts, _policy_rows(world, policy, best)))
    rng = np.random.default_rng(seed)  # the same layouts for every reward of traps
    cells = np.where(rng.random((_LAYOUTS[scale], *world.shape)) < _TRAPS, "T", ".")
    cells[:, 0, 0], cells[:, -1, -1] = "S", "G"
    layouts = [["".join(row) for row in layout] for layout in cells]
    drawn = {"trap_share": _TRAPS, "shape": list(world.shape), "seed": seed}
    for trap in _TRAP_REWARDS:
        content = {**spec, **drawn, "layouts": len(layouts), "trap": trap}
        about, rows = {"question": QUESTION, "near": _NEAR}, layout_rows(layouts, trap)
        runs.append(Run(f"gridworld/layouts/trap={trap:g}", content, about, rows))
    return runs
