"""ViZDoom's scenarios beside the engine itself, their ends, seeds and words."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("vizdoom", reason='needs pip install "rbve[vizdoom]"')
import cv2
import vizdoom

import rbve
from rbve import envs
from rbve.behaviours import scripts
from rbve.behaviours.scripts import doom_basic
from rbve.envs import vizdoom as adapter
from rbve.envs.vizdoom import DoomEnv
from rbve.evaluation.actors import ScriptActor
from rbve.evaluation.vector import open_vector, play


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The engine writes into the folder it is started from."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def basic() -> Iterator[DoomEnv]:
    env = envs.load("vizdoom:basic")
    assert isinstance(env, DoomEnv)
    yield env
    env.close()


@pytest.fixture
def engine(in_a_folder: Path) -> Iterator[vizdoom.DoomGame]:
    """The scenario as ViZDoom sets it up, with a time limit of its own."""
    game = vizdoom.DoomGame()
    game.load_config(os.path.join(vizdoom.scenarios_path, "basic.cfg"))
    game.set_window_visible(False)
    game.set_screen_format(vizdoom.ScreenFormat.RGB24)
    game.set_screen_resolution(vizdoom.ScreenResolution.RES_160X120)
    game.init()
    yield game
    game.close()


def same_episodes(env: DoomEnv, game: vizdoom.DoomGame, actions: np.ndarray) -> set[str]:
    """Steps both with the same seeds and actions; how the episodes ended."""
    seeds = np.random.default_rng(3)  # as `reset(3)` draws them
    seen = [env.reset(3)]
    ends = set()
    for episode in actions:
        game.set_seed(int(seeds.integers(2**31 - 1)))
        game.new_episode()
        for step, action in enumerate(episode):
            screen = game.get_state().screen_buffer
            small = cv2.resize(screen, (96, 72), interpolation=cv2.INTER_AREA)
            np.testing.assert_array_equal(seen[-1], small, err_msg=str(step))
            theirs = game.make_action([int(i == action) for i in range(3)], 4)
            obs, reward, terminated, truncated = env.step(int(action))
            seen.append(obs)
            assert reward == theirs
            assert (terminated or truncated) == game.is_episode_finished()
            assert truncated == game.is_episode_timeout_reached()
            assert env.executed == action
            if terminated:
                np.testing.assert_array_equal(seen[-1], seen[-2])  # nothing new to see
            if terminated or truncated:
                ends.add("terminated" if terminated else "truncated")
                break
        seen = [env.reset()]
    return ends


def test_step_by_step_as_the_engine(basic: DoomEnv, engine: vizdoom.DoomGame) -> None:
    rng = np.random.default_rng(0)
    actions = rng.integers(3, size=(4, 75))
    idle = np.zeros((1, 75), int)  # walks into the wall until the time is up
    assert same_episodes(basic, engine, np.concatenate([actions, idle])) == {
        "terminated",
        "truncated",
    }


def test_it_looks_like_any_environment(basic: DoomEnv, in_a_folder: Path) -> None:
    assert (basic.name, basic.obs_shape) == ("vizdoom:basic", (72, 96, 3))
    assert basic.actions == ("move_left", "move_right", "attack")
    assert (basic.max_steps, basic.executed, basic.legal) == (75, -1, None)
    first = basic.reset(1)
    assert (first.shape, first.dtype) == ((72, 96, 3), np.uint8)
    assert len(np.unique(first)) > 20  # a picture
    channels = first.reshape(-1, 3).mean(0)
    assert channels[0] > channels[2]  # Doom's browns: red first, blue last


def test_the_limit_truncates_with_a_view_of_its_own(basic: DoomEnv) -> None:
    basic.reset(2)
    ends, last = [], None
    for step in range(75):
        before = last
        last, _, *end = basic.step(step // 6 % 2)  # to and fro
        ends.append(end)
    assert ends == [[False, False]] * 74 + [[False, True]]
    assert before is not None
    assert (last != before).any()
    with pytest.raises(ValueError, match=r"stepped outside an episode; call reset\(\)"):
        basic.step(0)
    basic.reset()
    assert basic.step(0)[2:] == (False, False)


def test_seeds(basic: DoomEnv) -> None:
    def play(env: DoomEnv, seed: int) -> tuple[np.ndarray, list[float]]:
        views, rewards = [env.reset(seed)], []
        for action in [0, 2, 1, 2, 0, 0]:
            view, reward, *_ = env.step(action)
            views.append(view)
            rewards.append(reward)
        views.append(env.reset())  # the next episode follows from the seed too
        return np.array(views), rewards

    other = envs.load("vizdoom:basic")
    assert isinstance(other, DoomEnv)
    one, rewards = play(basic, 5)
    np.testing.assert_array_equal(one, play(other, 5)[0])
    np.testing.assert_array_equal(one, play(basic, 5)[0])
    assert rewards == play(other, 5)[1]
    starts = {play(other, seed)[0][0].tobytes() for seed in range(4)}
    assert len(starts) > 1
    assert (one[0] != one[-1]).any()
    other.close()


def test_it_leaves_nothing_behind(in_a_folder: Path) -> None:
    env = envs.load("vizdoom:health_gathering", noise=0.5)
    assert len(env.actions) == 5
    env.reset(0)
    assert env.step(4)[1] == 4.0  # alive for four tics
    env.close()
    assert list(in_a_folder.iterdir()) == []
    assert Path.cwd() == in_a_folder


def test_engines_started_by_threads_change_no_directory_for_good(in_a_folder: Path) -> None:
    class Engine:
        places: ClassVar[list[Path]] = []

        def init(self) -> None:
            before = Path.cwd()
            time.sleep(0.05)
            assert Path.cwd() == before
            self.places.append(before)
            self.place = before

        def close(self) -> None:
            assert self.place.exists()  # where the engine writes its settings once more

    def start() -> DoomEnv:
        env = DoomEnv.__new__(DoomEnv)
        env._game = Engine()
        env._start()
        return env

    with ThreadPoolExecutor(3) as threads:
        made = [threads.submit(start) for _ in range(3)]
    assert Path.cwd() == in_a_folder
    assert len({each.result() for each in made}) == len(set(Engine.places)) == 3
    assert in_a_folder not in Engine.places
    for each in made:
        each.result().close()
    assert not any(place.exists() for place in Engine.places)


def test_death_terminates() -> None:
    env = envs.load("vizdoom:health_gathering")
    env.reset(0)
    rewards, ends = [], []
    for _ in range(400):
        _, reward, *end = env.step(0)  # turns on the spot, on a floor that hurts
        rewards.append(reward)
        ends.append(end)
        if any(end):
            break
    env.close()
    assert ends[-1] == [True, False]
    assert rewards[-1] < -90  # the scenario's 100 for dying
    assert set(rewards[:-1]) == {4.0}
    assert len(ends) < 200


def test_buttons_make_actions() -> None:
    pressed = adapter.combinations(["turn_left", "turn_right", "move_forward", "attack"])
    assert pressed == {
        "turn_left": [True, False, False, False],
        "turn_right": [False, True, False, False],
        "move_forward": [False, False, True, False],
        "attack": [False, False, False, True],
        "move_forward+turn_left": [True, False, True, False],
        "move_forward+turn_right": [False, True, True, False],
    }
    assert list(adapter.combinations(["turn_left", "attack"])) == ["turn_left", "attack"]


def test_all_scenarios_ship_with_the_package() -> None:
    shipped = {path.stem for path in Path(vizdoom.scenarios_path).glob("*.cfg")}
    assert set(adapter.SCENARIOS) <= shipped


def test_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="Did you mean 'vizdoom:health_gathering'"):
        envs.load("vizdoom:health_gatherin")
    monkeypatch.setitem(sys.modules, "vizdoom", None)
    with pytest.raises(ImportError, match=r'pip install "rbve\[vizdoom\]"'):
        envs.load("vizdoom:basic")


def test_scripts_are_told_where_things_are(basic: DoomEnv) -> None:
    basic.reset(0)
    player, monster = basic.ram
    assert player[2] == 0.0
    assert monster[2] == pytest.approx(180)
    for _ in range(3):
        basic.step(basic.actions.index("move_left"))
    assert basic.ram[0, 1] > player[1]  # y grows to the left
    np.testing.assert_array_equal(basic.ram[1], monster)  # it stays


@pytest.mark.parametrize(("monster", "action"), [(90, 0), (-90, 1), (52, 2), (12, 2), (53, 0)])
def test_the_script_aims(monster: float, action: int) -> None:
    memory = np.array([[-384.0, 32.0, 0.0], [0.0, monster, 180.0]])
    assert doom_basic.Player().act(memory) == action


def test_the_script_shoots_the_monster() -> None:
    """In every one of 8 episodes."""
    lanes = open_vector("vizdoom:basic", count=2)
    traces = list(play(lanes, ScriptActor(scripts.load("vizdoom:basic")), 8, 0.0, seed=0))
    lanes.close()
    assert all(trace.terminated for trace in traces)
    assert min(sum(trace.reward) for trace in traces) > 40


@pytest.mark.slow
def test_a_policy_with_memory_learns_from_the_script_and_plays(tmp_path: Path) -> None:
    rbve.record("vizdoom:basic", tmp_path / "data", 3, policy="script", epsilon=0.25)
    plan = {"memory": 4, "hidden": (4,), "torso": "mlp", "sequence": 8, "batch_size": 2}
    policy = rbve.train(tmp_path / "data", "rbve", steps=2, holdout=0, spec=plan)
    found = rbve.evaluate(policy, "vizdoom:basic", episodes=2)
    assert -1000 < found["return"] < 100  # from every decision a wasted shot to a hit at once
    assert 1 <= found["episode_length"] <= 75
