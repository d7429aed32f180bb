"""Players that see all take the ways counted by hand, and environments pay what they promise."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import jax
import level_returns
import numpy as np
import pytest
from level_players import collector, rememberer, seeker

from rbve import envs
from rbve.envs.base import Env
from rbve.envs.collect import State

MOVES = [(-1, 0), (0, 1), (1, 0), (0, -1)]  # up, right, down, left


def room(objects: dict[tuple[int, int], int], at: tuple[int, int]) -> State:
    """1 pays, 2 costs; the agent faces right."""
    cells = np.zeros((9, 9), np.uint8)
    for cell, kind in objects.items():
        cells[cell] = kind
    return State(cells, np.array(at), np.array(1), np.array(0))


def load(name: str) -> Env:
    env = envs.load(name)
    assert isinstance(env, Env)
    return env


def test_the_collector_goes_round_what_costs() -> None:
    way = collector(room({(0, 1): 2, (0, 2): 1, (8, 8): 1}, (0, 0)))
    assert way == ("right", "forward", "left", "forward", "forward", "left", "forward")


def test_the_collector_prefers_few_turns_to_few_cells() -> None:
    state = room({(4, 6): 1, (5, 3): 1}, (4, 4))  # 2 ahead; 1 down and 1 back
    assert collector(state) == ("forward", "forward")


def test_the_collector_breaks_through_only_where_it_must() -> None:
    shut_in = {(0, 8): 1, (0, 7): 2, (1, 8): 2}
    assert collector(room(shut_in, (0, 5))) == ("forward",) * 3
    state = room({**shut_in, (0, 2): 1}, (0, 5))  # farther by its turns, but open
    assert collector(state) in [(turn, turn, *["forward"] * 3) for turn in ("left", "right")]


def test_the_collector_never_touches_what_costs() -> None:
    reset = jax.jit(jax.vmap(load("collect:many").reset))
    states = jax.tree.map(np.asarray, reset(jax.random.split(jax.random.key(0), 40))[0])
    for k in range(40):
        state = State(*(column[k] for column in states))
        (row, column), heading = state.position, int(state.heading)
        trodden = []
        for action in collector(state):
            heading = (heading + {"left": 3, "right": 1, "forward": 0}[action]) % 4
            if action == "forward":
                row, column = row + MOVES[heading][0], column + MOVES[heading][1]
                trodden.append(int(state.cells[row, column]))
        assert trodden == [0] * (len(trodden) - 1) + [1]


def grid(rows: list[str], heading: int) -> Any:
    """W wall, A agent, K key, L locked door, G goal."""
    tiles = np.array([["W.KLGA".index(tile) for tile in row] for row in rows])
    ((row, column),) = np.argwhere(tiles == 5)
    ids = np.array([2, 1, 7, 8, 6, 1])[tiles]  # xminigrid's
    agent = SimpleNamespace(position=np.array([row, column]), direction=np.array(heading))
    return SimpleNamespace(state=SimpleNamespace(grid=ids[..., None], agent=agent))


def test_the_seeker_fetches_the_key_and_opens_the_door() -> None:
    way = seeker(grid(["WWWWW", "WAW.W", "W.L.W", "WKWGW", "WWWWW"], heading=0))
    assert way[:2] in [("left", "left"), ("right", "right")]
    assert way[2:] == (
        "forward", "pick_up", "left", "toggle", "forward", "forward", "right", "forward",
    )  # fmt: skip


def test_the_seeker_takes_the_key_only_where_it_must() -> None:
    way = seeker(grid(["WWWWWW", "WA..GW", "WKWWWW", "WWWWWW"], heading=2))
    assert way == ("left", "forward", "forward", "forward")
    blocked = grid(["WWWWW", "WAKGW", "WWWWW"], heading=1)
    assert seeker(blocked) == ("pick_up", "forward", "forward")
    assert seeker(grid(["WWWWW", "WALGW", "WWWWW"], heading=1)) == ()  # no key, no way


def test_the_rememberer_looks_before_it_chooses() -> None:
    """Counted by hand for the agent's columns, with one choice in view and with the other."""
    pytest.importorskip("xminigrid", reason='needs pip install "rbve[xminigrid]"')
    counted = {1: {7, 9}, 2: {8, 10}, 3: {9, 11}, 4: {10, 12}, 5: {11}}
    reset = jax.jit(load("xminigrid:MiniGrid-MemoryS8").reset)
    found: dict[int, set[int]] = {}
    for key in jax.random.split(jax.random.key(1), 60):
        timestep, _ = reset(key)
        start = int(timestep.state.agent.position[1])
        found.setdefault(start, set()).add(len(rememberer(timestep)))
    assert found == counted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "limit", "longest"), [("MemoryS8", 320, 12), ("DoorKey-5x5", 250, 16)]
)
def test_the_environment_pays_for_the_way_found(level: str, limit: int, longest: int) -> None:
    pytest.importorskip("xminigrid", reason='needs pip install "rbve[xminigrid]"')
    player, lengths = level_returns.PLAYERS[f"xminigrid:MiniGrid-{level}"], []

    def noted(timestep: Any) -> tuple[str, ...]:
        lengths.append(len(player(timestep)))
        return player(timestep)

    env = load(f"xminigrid:MiniGrid-{level}")
    returns = level_returns.play(env, noted, episodes=6, seed=2)
    assert len(lengths) == 6  # asked once an episode: it ended where the way ends
    assert max(lengths) <= longest
    np.testing.assert_allclose(returns, 1 - 0.9 * np.array(lengths) / limit, rtol=1e-6)


def test_figures() -> None:
    assert level_returns.figure(np.array([1.0, 2, 3, 4])) == "2.50 ± 0.65"  # √(5/3) / 2
    assert level_returns.figure(np.array([-300.0, -100])) == "−200 ± 100"
    assert level_returns.figure(np.array([0.25, 0.25])) == "0.250 ± 0.000"


@pytest.mark.slow
def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["level_returns.py", "--level", "collect:few", "--episodes", "2"]
    monkeypatch.setattr(sys, "argv", command)
    level_returns.main()
    *_, row = capsys.readouterr().out.splitlines()
    name, _, best, episodes = row.strip("| ").split(" | ")
    assert (name, episodes) == ("`collect:few`", "2 each")
    assert 8 < float(best.split()[0]) < 20
    monkeypatch.setattr(sys, "argv", [*command[:-1], "1"])
    with pytest.raises(SystemExit):
        level_returns.main()
