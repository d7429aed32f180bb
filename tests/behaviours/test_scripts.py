"""Scripted players, and policies that join frames, recorded from Atari."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

pytest.importorskip("ale_py", reason='needs pip install "rbve[atari]"')

from rbve import algorithms, api
from rbve.behaviours import scripts
from rbve.behaviours.scripts import boxing, pong
from rbve.data.inputs import first_rows, frames
from rbve.evaluation.actors import ScriptActor
from rbve.evaluation.vector import open_vector, play
from rbve.networks import build
from rbve.policy import Policy

PONG = "atari:Pong,max_steps=900"


def memory(x: int, y: int, paddle: int) -> np.ndarray:
    found = np.zeros(128, np.uint8)
    found[[49, 54, 51]] = x, y, paddle
    return found


def test_where_the_ball_arrives() -> None:
    # 4 to the right and 2 down a step: 15 steps to x 190.
    assert pong.arrival((126, 98), (130, 100)) == (130, 15)
    # 8 down a step: 220 lies beyond the wall at 206.5, so it comes back to 193.
    assert pong.arrival((126, 92), (130, 100)) == (193, 15)
    # 6 up a step: 10 lies beyond the wall at 44.5, so it comes back to 79.
    assert pong.arrival((126, 106), (130, 100)) == (79, 15)


@pytest.mark.parametrize(("paddle", "action"), [(60, pong.DOWN), (190, pong.UP), (128, pong.STAY)])
def test_the_paddle_goes_where_the_ball_will_be(paddle: int, action: int) -> None:
    player = pong.Player()
    player.act(memory(126, 98, paddle))
    player.pushes = (0, 0)
    assert player.act(memory(130, 100, paddle)) == action


def test_it_serves_when_there_is_no_ball() -> None:
    assert pong.Player().act(memory(205, 0, 109)) == pong.SERVE


def test_the_script_beats_the_built_in_player() -> None:
    """Over the first 900 steps of 3 games with sticky actions; the uniform player loses them."""
    lanes = open_vector(PONG, count=3)
    traces = list(play(lanes, ScriptActor(scripts.load(PONG)), 3, 0.0, seed=0))
    rewards = np.concatenate([trace.reward for trace in traces])
    assert (rewards > 0).sum() > 2 * (rewards < 0).sum()
    assert (rewards > 0).sum() >= 3


@pytest.mark.parametrize(
    ("other", "actions"),
    [
        ((150, 50), (3, 3)),  # far to the right, level enough: go there
        ((10, 120), (9, 9)),  # too far to the left, and far below
        ((73, 50), (1, 0)),  # at arm's length: punch, draw back
        ((60, 54), (12, 4)),  # too near: step back to the left, punching
        ((40, 50), (11, 3)),  # too near on the left: back to the right
        ((73, 10), (2, 2)),  # far above
    ],
)
def test_the_boxer_stands_at_arms_length_and_punches(other, actions) -> None:
    ring = np.zeros(128, np.uint8)
    ring[[32, 34]] = 50, 50
    ring[[33, 35]] = other
    player = boxing.Player()
    assert (player.act(ring), player.act(ring)) == actions


def test_the_boxer_beats_the_built_in_one() -> None:
    """Over the first 400 steps of 4 games with sticky actions."""
    lanes = open_vector("atari:Boxing,max_steps=400", count=4)
    traces = list(play(lanes, ScriptActor(scripts.load("atari:Boxing")), 4, 0.1, seed=0))
    rewards = np.concatenate([trace.reward for trace in traces])
    assert (rewards > 0).sum() > 1.5 * (rewards < 0).sum()
    assert (rewards > 0).sum() >= 10


def test_recording_a_script_with_noise(tmp_path: Path) -> None:
    data = api.record("atari:Pong,max_steps=50", tmp_path / "pong", 3, "script", epsilon=0.4)
    assert data.obs.shape == (153, 84, 84, 1)
    assert data.obs.dtype == np.uint8
    assert data.provenance["behaviour"] == "script"
    assert "reference" not in data.provenance  # which is for whole games
    assert data.propensity is not None
    decided = data.action >= 0
    likely = np.isclose(data.propensity[decided], 0.6 + 0.4 / 6)
    assert (likely | np.isclose(data.propensity[decided], 0.4 / 6)).all()
    assert likely.mean() == pytest.approx(0.6 + 0.4 / 6, abs=5 * np.sqrt(0.25 / 150))


def test_recording_a_policy_that_joins_frames(tmp_path: Path) -> None:
    """What it did is what it would do with frames joined as training joins them."""
    algorithm = algorithms.load("bve")
    options = algorithm.options()
    shape, hidden = (84, 84, 4), (8,)
    network = build(shape, 6, "q", options, hidden, jax.random.key(2), "mlp")
    names = tuple("abcdef")
    policy = Policy(
        algorithm, options, algorithm.config(), network, shape, names, hidden, torso="mlp"
    )
    data = api.record("atari:Pong,max_steps=25", tmp_path / "pong", 2, policy, epsilon=0.3)
    rows = np.flatnonzero(data.action >= 0)
    assert len(rows) == 50
    stacked = frames(data, rows, first_rows(data)[rows], 4)
    best = policy.act(np.concatenate([stacked[:, k] for k in range(4)], axis=-1))
    assert data.propensity is not None
    np.testing.assert_array_equal(data.propensity[rows] > 0.5, data.action[rows] == best)


def test_files_name_what_they_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rider.py").touch()
    made = SimpleNamespace(Player=object, PLAYS="atari:BeamRider")
    monkeypatch.setattr(scripts, "FOLDER", tmp_path)
    monkeypatch.setitem(sys.modules, "rbve.behaviours.scripts.rider", made)
    assert scripts.load("atari:BeamRider,sticky=0") is object
    with pytest.raises(ValueError, match=r"scripts play atari:BeamRider$"):
        scripts.load("atari:Pong")


def test_games_without_a_script() -> None:
    names = "atari:Boxing, vizdoom:basic, atari:Pong"
    with pytest.raises(ValueError, match=f"no script plays atari:Breakout; scripts play {names}"):
        scripts.load("atari:Breakout")
    with pytest.raises(ValueError, match="no script plays catch"):
        scripts.load("catch")
