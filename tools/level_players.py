"""Players who know more than an agent: references for levels that show little at a time.

A player looks at the state of an environment and gives the names of its next actions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rbve.envs.collect import COSTS, HEADINGS, PAYS, SIDE
from rbve.envs.collect import FLOOR as EMPTY
from rbve.envs.xminigrid import BALL, GOAL, KEY, LOCKED, OPEN

FLOOR = 1  # xminigrid's id

Cell = tuple[int, int]  # row, column
Way = tuple[str, ...]  # actions
Node = TypeVar("Node", bound=Hashable)


class Place(NamedTuple):
    row: int
    column: int
    heading: int  # of HEADINGS

    @property
    def cell(self) -> Cell:
        return self.row, self.column

    @property
    def ahead(self) -> Cell:
        down, right = HEADINGS[self.heading].tolist()
        return self.row + down, self.column + right


def stand(position: Any, heading: Any) -> Place:
    row, column = np.asarray(position).tolist()
    return Place(row, column, int(heading))


def ways(
    start: Node, moves: Callable[[Node], Iterator[tuple[str, Node]]]
) -> Iterator[tuple[Node, Way]]:
    """All that can be reached, each with a shortest way, nearest first."""
    met = {start}
    queue: deque[tuple[Node, Way]] = deque([(start, ())])
    while queue:
        node, way = queue.popleft()
        yield node, way
        for action, after in moves(node):
            if after not in met:
                met.add(after)
                queue.append((after, (*way, action)))


def walk(place: Place, free: Callable[[Cell], bool]) -> Iterator[tuple[str, Place]]:
    """What turning and going forward lead to."""
    yield "left", place._replace(heading=(place.heading - 1) % 4)
    yield "right", place._replace(heading=(place.heading + 1) % 4)
    if free(place.ahead):
        yield "forward", Place(*place.ahead, place.heading)


def to_cell(start: Place, wanted: Callable[[Cell], bool], free: Callable[[Cell], bool]) -> Way:
    """A shortest way to a wanted cell; empty if there is none."""
    found = ways(start, lambda place: walk(place, free))
    return next((way for place, way in found if wanted(place.cell)), ())


# Object collection


def collector(state: Any) -> Way:
    """To the nearest object that pays, past the others unless they shut it in."""
    cells = np.asarray(state.cells)
    start = stand(state.position, state.heading)

    def way_over(*kinds: int) -> Way:
        def free(cell: Cell) -> bool:
            return 0 <= min(cell) <= max(cell) < SIDE and cells[cell] in kinds

        return to_cell(start, lambda cell: cells[cell] == PAYS, free)

    return way_over(EMPTY, PAYS) or way_over(EMPTY, PAYS, COSTS)


# MiniGrid


def on_grid(timestep: Any) -> tuple[np.ndarray, Place]:
    """The kinds of tiles, and where the agent is."""
    agent = timestep.state.agent
    tiles = np.asarray(timestep.state.grid)[..., 0]
    return tiles, stand(agent.position, agent.direction)


class Quest(NamedTuple):
    place: Place
    has_key: bool = False
    door_open: bool = False


def seeker(timestep: Any) -> Way:
    """A shortest way to the goal, by key and locked door (at most one each) if need be."""
    tiles, start = on_grid(timestep)

    def moves(quest: Quest) -> Iterator[tuple[str, Quest]]:
        def free(cell: Cell) -> bool:
            taken = tiles[cell] == KEY and quest.has_key
            opened = tiles[cell] == LOCKED and quest.door_open
            return taken or opened or tiles[cell] in (FLOOR, GOAL, OPEN)

        for action, place in walk(quest.place, free):
            yield action, quest._replace(place=place)
        ahead = tiles[quest.place.ahead]
        if ahead == KEY:
            yield "pick_up", quest._replace(has_key=True)
        if ahead == LOCKED and quest.has_key:
            yield "toggle", quest._replace(door_open=True)

    found = ways(Quest(start), moves)
    return next((way for quest, way in found if tiles[quest.place.cell] == GOAL), ())


class Knowing(NamedTuple):
    place: Place
    cue: bool  # has seen the object to remember
    choice: bool  # has seen one of those to choose from


def rememberer(timestep: Any) -> Way:
    """What takes fewest steps on average of all that looks before it chooses.

    Nothing tells the two ends apart before both the cue and a choice were seen, so the way up to
    there is the one whose mean over either end is shortest.
    """
    tiles, start = on_grid(timestep)
    view = timestep.observation.shape[0]
    cue, *choices = sorted(np.argwhere(np.isin(tiles, (BALL, KEY))).tolist(), key=lambda at: at[1])
    carry = timestep.state.carry
    right, wrong = tuple(carry.success_pos.tolist()), tuple(carry.failure_pos.tolist())

    def know(place: Place, before: Knowing | None = None) -> Knowing:
        cue_now = sees(place, cue, view)
        choice_now = any(sees(place, each, view) for each in choices)
        if before is None:
            return Knowing(place, cue_now, choice_now)
        return Knowing(place, before.cue or cue_now, before.choice or choice_now)

    def moves(knowing: Knowing) -> Iterator[tuple[str, Knowing]]:
        if not (knowing.cue and knowing.choice):  # else it has looked enough
            for action, place in walk(knowing.place, lambda cell: free(cell, right, wrong)):
                yield action, know(place, knowing)

    def free(cell: Cell, *ends: Cell) -> bool:
        return bool(tiles[cell] == FLOOR) and cell not in ends

    def to(end: Cell, other: Cell, place: Place) -> Way:
        return to_cell(place, lambda cell: cell == end, lambda cell: free(cell, other))

    plans = []
    for known, way in ways(know(start), moves):
        if known.cue and known.choice:
            rest, other = to(right, wrong, known.place), to(wrong, right, known.place)
            plans.append((2 * len(way) + len(rest) + len(other), way + rest))
    return min(plans, key=lambda plan: plan[0])[1]


def sees(place: Place, cell: list[int], view: int) -> bool:
    """Whether a cell is in the square of `view` cells ahead, the agent amid its last row."""
    offset = np.array(cell) - place.cell
    ahead = int(offset @ HEADINGS[place.heading])
    aside = int(offset @ HEADINGS[(place.heading + 1) % 4])
    return 0 <= ahead < view and abs(aside) <= view // 2
