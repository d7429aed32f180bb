"""One greedy step on the values of the behaviour: where it is optimal (appendix B), exactly.

Chain (lemma 2): states in a row, uniform behaviour, γ < 1, both exits of the right end pay 1.
Grid: its analogue in two dimensions, all four exits of one goal cell pay 1.
End (lemma 1): see `families`; each premise is also broken by itself.

Values are rational numbers, so a violation is a violation and a tie a tie.

    mdps            processes checked
    violations      those where some way to break ties is not optimal
    violations/any  those where no way to break ties is optimal
    margin          smallest, over processes and states, of [best Q of an optimal action − best Q
                    of another]; Q is the behaviour's
    margin/share    the same as a share of the larger of the two
    loss            largest value given up in a state, ties broken badly; of the family "end" as a
                    share of H − L
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from rbve.paper.theory import _exact as exact
from rbve.paper.theory import check_scale
from rbve.paper.theory._exact import MDP, Gap, Outcome, Policy
from rbve.paper.theory._families import ACTIONS, FAMILIES, PREMISES, STATES, Example, Family, draw
from rbve.rows import Row, Run

QUESTION = "Where is one greedy step on the values of the behaviour an optimal policy?"
_GAMMAS = tuple(Fraction(k, 1000) for k in (10, 100, 250, 500, 750, 900, 950, 990, 999))
LONGEST = {"quick": 20, "desk": 50}  # states of a chain
_LARGEST = {"quick": 4, "desk": 8}  # cells of a grid's side
_ANY_GOAL = {"quick": 4, "desk": 5}  # sides of grids with any goal
_WALLED, _WALLED_SIDE = {"quick": 40, "desk": 300}, 7  # grids with walls
_WALLED_GAMMAS = (Fraction(9, 10), Fraction(99, 100))
_MEMBERS = {"quick": 100, "desk": 1000}  # processes of each family of the lemma
_GRID_GAMMAS = tuple(Fraction(k, 100) for k in (10, 50, 90, 99))
_BIASES = tuple(Fraction(k, 10) for k in (1, 3, 7, 9))  # chances of going right
_WALLS = 0.25  # chance of a wall in a cell
_SECOND = Fraction(1, 2)  # what the left end pays where it pays

_Cell = tuple[int, int]
_LINE: tuple[_Cell, ...] = ((0, -1), (0, 1))  # left, right
_PLANE: tuple[_Cell, ...] = (*_LINE, (-1, 0), (1, 0))  # and up, down


class Check(NamedTuple):
    """One process."""

    violated: bool
    always: bool  # whatever way ties are broken
    margin: Fraction | None  # None if every action is optimal everywhere
    share: Fraction | None
    loss: Fraction


def walk(
    cells: Sequence[_Cell], pays: dict[_Cell, Fraction], steps: Sequence[_Cell], gamma: Fraction
) -> MDP:
    """Moves between neighbours; off the cells is staying. Every exit of a cell pays its reward."""
    index = {cell: k for k, cell in enumerate(cells)}
    nothing = Fraction(0)
    moves = [
        [[Outcome(index.get((r + dr, c + dc), k), pays.get((r, c), nothing))] for dr, dc in steps]
        for k, (r, c) in enumerate(cells)
    ]
    return MDP(moves, gamma)


def chain(count: int, gamma: Fraction, left: Fraction = Fraction(0)) -> MDP:
    cells = [(0, k) for k in range(count)]
    return walk(cells, {(0, 0): left, (0, count - 1): Fraction(1)}, _LINE, gamma)


def grid(cells: Sequence[_Cell], goal: _Cell, gamma: Fraction) -> MDP:
    return walk(cells, {goal: Fraction(1)}, _PLANE, gamma)


def rectangle(rows: int, columns: int) -> list[_Cell]:
    return list(product(range(rows), range(columns)))


def check_discounted(mdp: MDP, behaviour: Policy | None = None) -> Check:
    """γ < 1: a policy is optimal if and only if all its actions have the highest Q*."""
    table = exact.action_values(mdp, exact.evaluate(mdp, behaviour or exact.uniform(mdp)))
    choices = exact.greedy(table)
    best = exact.optimal(mdp, choices)
    gaps = exact.gaps(table, best)
    worst = [min(a, key=lambda k: best[s][k]) for s, a in enumerate(choices)]
    values = exact.evaluate(mdp, exact.only(mdp, worst))
    loss = max(max(row) - value for row, value in zip(best, values, strict=True))
    violated, always = any(gap.size <= 0 for gap in gaps), any(gap.size < 0 for gap in gaps)
    return Check(violated, always, *smallest(gaps), loss)


def check_ending(example: Example) -> Check:
    """By the values themselves: where states come back, an optimal action may lead nowhere."""
    mdp = example.mdp
    table = exact.action_values(mdp, exact.evaluate(mdp, example.behaviour))
    choices = exact.greedy(table)
    best = exact.backups(mdp, exact.every_action(mdp), max)
    worst, luckiest = exact.backups(mdp, choices, min), exact.backups(mdp, choices, max)
    gaps = exact.gaps(table, exact.action_values(mdp, best))
    if worst != best:  # a tie, at least
        gaps.append(Gap(Fraction(0), Fraction(0)))
    loss = max(a - b for a, b in zip(best, worst, strict=True)) / (example.high - example.low)
    return Check(worst != best, luckiest != best, *smallest(gaps), loss)


def smallest(gaps: Sequence[Gap]) -> tuple[Fraction | None, Fraction | None]:
    """Margin and share of a Check."""
    return (min(g.size for g in gaps), min(g.share for g in gaps)) if gaps else (None, None)


def summary(checks: Sequence[Check]) -> list[Row]:
    margins = [c.margin for c in checks if c.margin is not None]
    shares = [c.share for c in checks if c.share is not None]
    n = len(checks)
    found: dict[str, Fraction | float] = {
        "mdps": n,
        "violations": sum(c.violated for c in checks),
        "violations/any": sum(c.always for c in checks),
        "margin": min(margins, default=math.nan),
        "margin/share": min(shares, default=math.nan),
        "loss": max(c.loss for c in checks),
    }
    return [Row(0, name, float(value), n) for name, value in found.items()]


def job(name: str, words: str, checks: Sequence[Check], rows: Iterable[Row], **spec: Any) -> Run:
    facts = {"question": QUESTION, "family": words, "arithmetic": "rational"}
    content = {"experiment": "improvement", "family": name, **spec}
    return Run(f"improvement/{name}", content, facts, [*rows, *summary(checks)])


def _over_gammas(
    name: str, words: str, sizes: Sequence[int], gammas: Sequence[Fraction], make: Any
) -> Run:
    """A family by size and γ, its margins as rows: step is the size."""
    found = {
        (size, gamma): check_discounted(make(size, gamma)) for size in sizes for gamma in gammas
    }
    rows = [
        Row(size, f"{metric}/gamma={float(gamma):g}", float(value), 1)
        for (size, gamma), check in found.items()
        for metric, value in (("margin", check.margin), ("margin/share", check.share))
        if value is not None
    ]
    spec = {"sizes": [sizes[0], sizes[-1]], "gammas": [float(gamma) for gamma in gammas]}
    return job(name, words, list(found.values()), rows, **spec)


def chains(scale: str) -> list[Run]:
    sizes = range(2, LONGEST[scale] + 1)
    some = sizes[::4]
    biased = [
        check_discounted(mdp, [[1 - right, right]] * size)
        for size, gamma, right in product(some, _GAMMAS, _BIASES)
        for mdp in [chain(size, gamma)]
    ]
    leaning = {"right": [float(right) for right in _BIASES], "sizes": list(some)}
    leaning["gammas"] = [float(gamma) for gamma in _GAMMAS]
    paid = partial(chain, left=_SECOND)
    return [
        _over_gammas("chain", "chain, uniform behaviour", sizes, _GAMMAS, chain),
        job("chain/biased", "chain, behaviour leans left or right", biased, [], **leaning),
        _over_gammas("chain/left-pays", "chain whose left end pays ½", some, _GAMMAS, paid),
    ]


def grids(scale: str, seed: int) -> list[Run]:
    sides = range(2, _LARGEST[scale] + 1)

    def corner(side: int, gamma: Fraction) -> MDP:
        return grid(rectangle(side, side), (side - 1, side - 1), gamma)

    shapes = [(r, c) for r, c in product(range(2, _ANY_GOAL[scale] + 1), repeat=2) if r <= c]
    anywhere = [
        check_discounted(grid(rectangle(*shape), goal, gamma))
        for shape, gamma in product(shapes, _GRID_GAMMAS)
        for goal in rectangle(*shape)
    ]
    gammas = [float(gamma) for gamma in _GRID_GAMMAS]
    spec = {"shapes": [list(shape) for shape in shapes], "gammas": gammas}
    return [
        _over_gammas("grid/corner", "square grid, goal in a corner", sides, _GRID_GAMMAS, corner),
        job("grid/any-goal", "rectangles, goal in any cell", anywhere, [], **spec),
        *(_walled(gamma, scale, seed) for gamma in _WALLED_GAMMAS),
    ]


def _walled(gamma: Fraction, scale: str, seed: int) -> Run:
    rng = np.random.default_rng(seed)  # the same grids for every γ
    layouts = [walls(rng, _WALLED_SIDE) for _ in range(_WALLED[scale])]
    checks = [check_discounted(grid(cells, goal, gamma)) for cells, goal in layouts]
    name = f"grid/walls/gamma={float(gamma):g}"
    words = f"grid with walls, goal in a corner, γ = {float(gamma):g}"
    spec = {"side": _WALLED_SIDE, "wall_share": _WALLS, "gamma": float(gamma), "seed": seed}
    return job(name, words, checks, [], **spec)


def walls(rng: np.random.Generator, side: int) -> tuple[list[_Cell], _Cell]:
    """Free cells that can reach the goal in the corner, at least two thirds of all."""
    goal = (side - 1, side - 1)
    while True:
        free = {cell for cell in rectangle(side, side) if cell == goal or rng.random() >= _WALLS}
        reached = {goal}
        while True:
            more = reached | {(r + dr, c + dc) for r, c in reached for dr, dc in _PLANE} & free
            if more == reached:
                break
            reached = more
        if 3 * len(reached) >= 2 * side * side and len(reached) < side * side:
            return sorted(reached), goal


def ending(name: str, family: Family, scale: str, seed: int) -> Run:
    # A stream per family: adding one leaves the others as they were.
    rng = np.random.default_rng([seed, *name.encode()])
    checks = [check_ending(draw(family, rng)) for _ in range(_MEMBERS[scale])]
    broken = None if family.broken is None else PREMISES[family.broken]
    sizes = {"states": list(STATES), "actions": list(ACTIONS)}
    return job(f"end/{name}", family.words, checks, [], broken=broken, seed=seed, **sizes)


def run(scale: str = "desk", seed: int = 0) -> list[Run]:
    scale = check_scale(scale)
    endings = [ending(name, family, scale, seed) for name, family in FAMILIES.items()]
    return [*chains(scale), *grids(scale, seed), *endings]
