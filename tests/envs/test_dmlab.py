"""DeepMind Lab's adapter against a fake that takes nothing but what the Lab documents."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest
from support.recordings import record_policy

import rbve
from rbve import envs
from rbve.data._rlu.schemas import DMLAB_ACTIONS
from rbve.envs import dmlab
from rbve.envs.base import NoisyHostEnv

FRAMES = 20  # of an episode of the fake


class FakeLab:
    """Strict where the Lab is, and a diary of every call."""

    made: ClassVar[list[FakeLab]] = []

    def __init__(
        self,
        level: str,
        observations: list[str],
        config: dict[str, str] | None = None,
        renderer: str = "software",
    ) -> None:
        assert isinstance(level, str)
        assert observations == ["RGB_INTERLEAVED"]
        assert renderer in ("software", "hardware")
        assert config is not None
        assert all(isinstance(word, str) for pair in config.items() for word in pair)
        self.level, self.config = level, config
        self.seeds: list[int] = []
        self.steps: list[tuple[list[int], int]] = []
        self.frame = -1  # −1: no episode has begun
        self.closed = False
        self._buffer = np.zeros((int(config["height"]), int(config["width"]), 3), np.uint8)
        FakeLab.made.append(self)

    def reset(self, episode: int = -1, seed: int | None = None) -> None:
        assert episode == -1
        assert seed is None or (type(seed) is int and 0 <= seed < 2**31)
        self.seeds.append(-1 if seed is None else seed)
        self.frame = 0

    def is_running(self) -> bool:
        return 0 <= self.frame < FRAMES

    def step(self, action: np.ndarray, num_steps: int = 1) -> float:
        if not self.is_running():
            raise RuntimeError("Environment not running.")
        assert isinstance(action, np.ndarray)
        assert action.dtype == np.intc
        assert action.shape == (7,)
        assert type(num_steps) is int
        self.steps.append((action.tolist(), num_steps))
        played = min(num_steps, FRAMES - self.frame)
        self.frame += played
        self._buffer[...] = 77  # the Lab draws into the memory it has shown
        return 0.5 * played

    def observations(self) -> dict[str, np.ndarray]:
        if not self.is_running():
            raise RuntimeError("Environment in wrong status for call to observations()")
        self._buffer[...] = self.frame  # the same memory every time
        self._buffer[..., 0] = self.seeds[-1] % 251
        return {"RGB_INTERLEAVED": self._buffer}

    def close(self) -> None:
        assert not self.closed
        self.closed = True


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> list[FakeLab]:
    module = ModuleType("deepmind_lab")
    module.Lab = FakeLab  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "deepmind_lab", module)
    FakeLab.made = []
    return FakeLab.made


def load(level: str) -> dmlab.LabEnv:
    env = envs.load(f"dmlab:{level}")
    assert isinstance(env, dmlab.LabEnv)
    return env


@pytest.mark.parametrize(
    ("level", "folder", "repeats"),
    [
        ("explore_object_rewards_few", "contributed/dmlab30/", 4),
        ("explore_object_rewards_many", "contributed/dmlab30/", 4),
        ("rooms_select_nonmatching_object", "contributed/dmlab30/", 4),
        ("rooms_watermaze", "contributed/dmlab30/", 4),
        ("seekavoid_arena_01", "", 2),
    ],
)
def test_levels_are_made_as_rl_unplugged_made_them(
    labs: list[FakeLab], level: str, folder: str, repeats: int
) -> None:
    env = load(level)
    (lab,) = labs
    assert lab.level == folder + level
    assert lab.config == {
        "fps": "30",
        "height": "72",
        "width": "96",
        "maxAltCameraHeight": "1",
        "maxAltCameraWidth": "1",
        "hasAltCameras": "false",
    }
    assert (env.name, env.obs_shape) == (f"dmlab:{level}", (72, 96, 3))
    assert (len(env.actions), env.executed, env.legal) == (15, -1, None)
    env.reset(seed=1)
    env.step(0)
    assert lab.steps == [([0, 0, 0, 1, 0, 0, 0], repeats)]


def test_actions_are_named_as_in_the_records(labs: list[FakeLab]) -> None:
    assert load("seekavoid_arena_01").actions == DMLAB_ACTIONS


def test_the_fifteen_actions(labs: list[FakeLab]) -> None:
    env = load("seekavoid_arena_01")
    sent = []
    for action in range(15):
        env.reset()
        env.step(action)
        assert env.executed == action
        sent.append(labs[0].steps[-1][0])
    look, forward, back = [-10, 10, -60, 60], [0, 0, 0, 1, 0, 0, 0], [0, 0, 0, -1, 0, 0, 0]
    assert sent[:4] == [forward, back, [0, 0, -1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0]]
    assert sent[4:8] == [[x, 0, 0, 0, 0, 0, 0] for x in look]
    assert sent[8:10] == [[0, 10, 0, 0, 0, 0, 0], [0, -10, 0, 0, 0, 0, 0]]
    assert sent[10:14] == [[x, 0, 0, 1, 0, 0, 0] for x in look]
    assert sent[14] == [0, 0, 0, 0, 1, 0, 0]


def test_an_episode_is_cut_by_its_clock(labs: list[FakeLab]) -> None:
    env = load("rooms_watermaze")
    views = [env.reset(seed=4)]
    ends = []
    for _ in range(5):
        view, reward, *end = env.step(5)
        views.append(view)
        ends.append(end)
        assert reward == 2.0  # four frames of one half
    assert ends == [[False, False]] * 4 + [[False, True]]  # never a termination
    # Views are copies, and the last one is shown again once the Lab has stopped.
    assert [int(view[3, 5, 1]) for view in views] == [0, 4, 8, 12, 16, 16]
    assert all(view.dtype == np.uint8 and view.shape == (72, 96, 3) for view in views)
    with pytest.raises(ValueError, match=r"stepped outside an episode; call reset\(\)"):
        env.step(0)
    env.reset()
    assert env.step(0)[3] is False
    views[0][...] = 9  # whoever writes into a view spoils no other
    assert env.reset().min() == 0


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_last_view_of_a_recording_is_a_filler(
    labs: list[FakeLab], tmp_path: Path, noise: float
) -> None:
    record_policy("dmlab:rooms_watermaze", tmp_path / "data", None, episodes=2, noise=noise)
    data = rbve.load(tmp_path / "data")
    assert data.lengths.tolist() == [5, 5]
    assert not data.terminated.any()
    assert data.finals_known.tolist() == [False, False]


@pytest.mark.slow
def test_a_policy_with_memory_learns_and_plays(labs: list[FakeLab], tmp_path: Path) -> None:
    level = "dmlab:rooms_watermaze"
    record_policy(level, tmp_path / "data", None, episodes=3)
    plan = {"memory": 4, "hidden": (4,), "torso": "mlp", "batch_size": 2, "eval_episodes": 2}
    plan["every"] = 2
    policy = rbve.train(tmp_path / "data", "rbve", steps=2, env=level, spec=plan)
    found = rbve.evaluate(policy, level, episodes=2)
    # Five decisions of four frames each; what follows a cut is not known, nor is the error.
    assert (found["episode_length"], found["return"]) == (5.0, 10.0)
    assert len([step for lab in labs for step in lab.steps]) == 5 * (3 + 2 + 2)


def test_stepping_before_the_first_reset_is_refused(labs: list[FakeLab]) -> None:
    with pytest.raises(ValueError, match=r"call reset\(\) first"):
        load("rooms_watermaze").step(0)
    assert labs[0].steps == []


def test_seeds_follow_from_the_first(labs: list[FakeLab]) -> None:
    seeds = []
    for first in (7, 7, 8):
        env = load("rooms_watermaze")
        env.reset(seed=first)
        env.reset()
        env.reset()
        seeds.append(labs[-1].seeds)
    assert seeds[0] == seeds[1] != seeds[2]
    assert len(set(seeds[0])) == 3  # every episode has its own
    env.reset(seed=7)
    assert labs[-1].seeds[-1] == seeds[0][0]
    env.reset(seed=2**40)
    assert labs[-1].seeds[-1] >= 0


def test_noise_and_closing(labs: list[FakeLab]) -> None:
    env = envs.load("dmlab:rooms_watermaze", noise=1.0)
    assert isinstance(env, NoisyHostEnv)
    env.reset(seed=0)
    executed = []
    for _ in range(4):
        env.step(0)
        executed.append(env.executed)
    moves = list(dmlab.ACTIONS.values())
    assert [tuple(action) for action, _ in labs[0].steps] == [moves[i] for i in executed]
    assert len(set(executed)) > 1
    env.close()
    assert labs[0].closed


@pytest.mark.parametrize(
    ("level", "message"),
    [
        ("explore_object_rewards_fe", "Did you mean 'dmlab:explore_object_rewards_few'"),
        ("lasertag", "has no DeepMind Lab level 'lasertag'. Known: explore_object_rewards_few"),
    ],
)
def test_unknown_levels(level: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs.load(f"dmlab:{level}")


def test_a_missing_lab_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deepmind_lab", None)
    with pytest.raises(ImportError, match=r"needs the package deepmind_lab; .*google-deepmind/lab"):
        envs.load("dmlab:rooms_watermaze")
