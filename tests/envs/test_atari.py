"""Atari beside an independent preprocessing, on real cartridges, and the rules of RL Unplugged."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from support.tiers import first_and_slow

pytest.importorskip("ale_py", reason='needs pip install "rbve[atari]"')
import ale_py
import cv2
import gymnasium
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from rbve import envs
from rbve.envs import atari as games
from rbve.envs.atari import AtariEnv, title
from rbve.evaluation.vector import FrameStack

gymnasium.register_envs(ale_py)

# Random and online scores, the games that settings are tuned on first.
TABLE = """
BeamRider 363.9/5581, DemonAttack 152.1/6083, DoubleDunk -18.6/-6.2, IceHockey -11.2/-6.1,
MsPacman 307.3/3340, Pooyan 539.7/3250, RoadRunner 11.5/37473, Robotank 2.2/59.7,
Zaxxon 32.5/4638, Alien 227.8/2480, Amidar 5.8/1172, Assault 222.4/1523, Asterix 210/2737,
Atlantis 12850/853980, BankHeist 14.2/592.4, BattleZone 2360/17933, Boxing 0.1/77.5,
Breakout 1.7/93.9, Carnival 641.8/4794, Centipede 2091/2575, ChopperCommand 811/2664,
CrazyClimber 10780/103740, Enduro 0/631.7, FishingDerby -91.7/0.7, Freeway 0/26.2,
Frostbite 65.2/372.2, Gopher 257.6/5493, Gravitar 173/315.9, Hero 1027/17247,
Jamesbond 29/577.5, Kangaroo 52/11517, Krull 1598/6056, KungFuMaster 258.5/23384,
NameThisGame 2292/7232, Phoenix 761.4/4972, Pong -20.7/15.9, Qbert 163.9/10023,
Riverraid 1338/11429, Seaquest 68.4/1505, SpaceInvaders 148/1738, StarGunner 664/44202,
TimePilot 3568/3709, UpNDown 533.4/8802, VideoPinball 16257/72303, WizardOfWor 563.5/2077,
YarsRevenge 3093/23701
"""


def atari(name: str) -> AtariEnv:
    env = envs.load(f"atari:{name}")
    assert isinstance(env, AtariEnv)
    return env


@pytest.mark.parametrize("game", first_and_slow(["Pong", "Breakout", "BeamRider"]))
def test_frames_and_rewards_equal_gymnasium(game: str) -> None:
    base = gymnasium.make(f"ALE/{game}-v5", frameskip=1, repeat_action_probability=0.0)
    single = AtariPreprocessing(base, noop_max=0, frame_skip=4, grayscale_newaxis=False)
    theirs = FrameStackObservation(single, 4, padding_type="zero")
    ours = atari(f"{game},sticky=0")
    stack = FrameStack(1, ours.obs_shape, 4)
    rng = np.random.default_rng(1)
    expected, _ = theirs.reset(seed=3)
    stack.put(0, ours.reset(3), begins=True)
    assert len(ours.actions) == theirs.action_space.n  # type: ignore[attr-defined]
    rewarded = different = 0
    for step in range(300):
        np.testing.assert_array_equal(
            np.moveaxis(stack.joined()[0], -1, 0), expected, err_msg=f"{game} {step}"
        )
        action = int(rng.integers(len(ours.actions)))
        before = expected[-1]
        expected, wanted, over, cut, _ = theirs.step(action)
        obs, reward, terminated, truncated = ours.step(action)
        assert (reward, terminated, truncated) == (wanted, over, cut)
        stack.put(0, obs, begins=False)
        rewarded += reward != 0
        different += bool((expected[-1] != before).any())
        if over:
            break
    assert rewarded >= 1
    assert different > 200 or over
    theirs.close()


def test_frames_are_the_maximum_of_two_screens_resized_by_area() -> None:
    env = atari("Breakout,sticky=0")
    env.reset(0)
    other = ale_py.ALEInterface()
    other.setFloat("repeat_action_probability", 0.0)
    other.setInt("random_seed", 0)
    other.loadROM(ale_py.roms.get_rom_path("breakout"))
    pooled = 0
    for action in [1, 1, 2, 0, 3, 3, 2, 0, 1, 0, 2, 2] * 3:
        obs, *_ = env.step(action)
        screens = []
        for _ in range(4):
            other.act(other.getMinimalActionSet()[action])
            screens.append(other.getScreenGrayscale())
        joint = np.maximum(screens[2], screens[3])
        pooled += int((joint != screens[3]).any())
        expected = cv2.resize(joint, (84, 84), interpolation=cv2.INTER_AREA)
        np.testing.assert_array_equal(obs[..., 0], expected)
        # Every pixel is the mean of the area it covers, to rounding.
        rows, columns = area(210), area(160)
        assert np.abs(rows @ joint @ columns.T - obs[..., 0]).max() <= 0.51
    assert pooled > 0


def area(size: int) -> np.ndarray:
    """(84, size), the share of each old pixel in each new one."""
    edges = np.arange(85) * size / 84
    old = np.arange(size)
    overlap = np.minimum(edges[1:, None], old + 1) - np.maximum(edges[:-1, None], old)
    return np.maximum(overlap, 0) * 84 / size


def play(env: AtariEnv, seed: int | None, actions: np.ndarray) -> tuple[np.ndarray, list[float]]:
    frames, rewards = [env.reset(seed)], []
    for action in actions:
        obs, reward, over, cut = env.step(int(action))
        frames.append(obs)
        rewards.append(reward)
        if over or cut:
            break
    return np.asarray(frames), rewards


def test_a_seed_fixes_the_stickiness_and_seeds_differ() -> None:
    actions = np.random.default_rng(0).integers(6, size=60)
    env, other = atari("Pong"), atari("Pong")
    first, _ = play(env, 5, actions)
    assert (first != play(env, 6, actions)[0]).any()
    np.testing.assert_array_equal(first, play(env, 5, actions)[0])  # whatever came before
    np.testing.assert_array_equal(first, play(other, 5, actions)[0])
    quiet = atari("Pong,sticky=0")
    np.testing.assert_array_equal(play(quiet, 5, actions)[0], play(quiet, 6, actions)[0])


@pytest.mark.parametrize(("setting", "p"), [("", 0.25), (",sticky=0.6", 0.6)])
def test_a_frame_goes_on_with_the_previous_action_that_often(setting: str, p: float) -> None:
    """A change of action comes k frames late with probability p^k (1 − p)."""
    quiet = ale_py.ALEInterface()
    quiet.setFloat("repeat_action_probability", 0.0)
    quiet.loadROM(ale_py.roms.get_rom_path("pong"))
    ids, idle, down = quiet.getMinimalActionSet(), 0, 3
    places = []  # of the paddle, when the change comes 0, 1, 2 or more frames late
    for late in range(4):
        quiet.reset_game()
        for frame in range(4 * 19):
            quiet.act(ids[idle if frame < 4 * 18 + late else down])
        places.append(int(quiet.getRAM()[51]))
    assert len(set(places)) == 4
    env = atari(f"Pong{setting}")
    counts, trials = np.zeros(4), 80
    env.reset(1)
    for _ in range(trials):
        env.reset()
        for _ in range(18):
            env.step(idle)
        env.step(down)
        counts[places.index(int(env.ram[51]))] += 1
    expected = np.array([1 - p, p * (1 - p), p**2 * (1 - p), p**3])
    deviation = np.sqrt(expected * (1 - expected) / trials)
    assert (np.abs(counts / trials - expected) < 4 * deviation).all()


def test_the_cut_is_a_truncation() -> None:
    env = atari("Pong,max_steps=7")
    env.reset(0)
    ends = [env.step(0)[2:] for _ in range(7)]
    assert ends == [(False, False)] * 6 + [(False, True)]
    with pytest.raises(ValueError, match="outside an episode"):
        env.step(0)
    env.reset()
    assert env.step(0)[2:] == (False, False)
    assert atari("Pong").max_steps == 27_000
    assert atari("Pong,max_steps=108000").max_steps == 108_000


def test_lost_lives_end_nothing() -> None:
    env = atari("Breakout")
    env.reset(2)
    lives, ended_with = [], None
    for step in range(2000):
        over, cut = env.step(1 if step % 5 == 0 else 3)[2:]
        lives.append(env.lives)
        if over or cut:
            ended_with = (over, cut)
            break
    assert ended_with == (True, False)
    assert {5, 4, 3, 2, 1} <= set(lives)
    assert lives[-1] == 0


@pytest.mark.parametrize(
    ("game", "actions"),
    [("Pong", 6), ("Breakout", 4), ("Freeway", 3), ("MsPacman", 9), ("Alien", 18)],
)
def test_actions_are_the_minimal_set(game: str, actions: int) -> None:
    env = atari(game)
    assert len(env.actions) == len(set(env.actions)) == actions
    assert env.actions[0] == "noop"


def test_no_idle_steps_open_an_episode() -> None:
    env = atari("Pong")
    screen = ale_py.ALEInterface()
    screen.setInt("random_seed", 9)
    screen.loadROM(ale_py.roms.get_rom_path("pong"))
    expected = cv2.resize(screen.getScreenGrayscale(), (84, 84), interpolation=cv2.INTER_AREA)
    np.testing.assert_array_equal(env.reset(9)[..., 0], expected)


def test_all_games_of_the_benchmark_have_cartridges_and_scores() -> None:
    assert (len(games.TUNED_ON), len(games.REPORTED_ON), len(games.SCORES)) == (9, 37, 46)
    known = {title(rom) for rom in ale_py.roms.get_all_rom_ids()}
    assert set(games.SCORES) <= known
    assert all(random < online for random, online in games.SCORES.values())


def test_every_score_of_the_table() -> None:
    pairs = [each.split() for each in TABLE.replace("\n", " ").split(",")]
    expected = {game: tuple(map(float, scores.split("/"))) for game, scores in pairs}
    assert expected == games.SCORES
    assert list(expected)[:9] == list(games.TUNED_ON)


@pytest.mark.parametrize("settings", ["", ",max_steps=27000", ",max_steps=108000,sticky=0.25"])
def test_references(settings: str) -> None:
    reference = games.reference(f"atari:Pong{settings}")
    assert reference is not None
    assert (reference["random"], reference["online"]) == (-20.7, 15.9)
    assert reference["source"].startswith("proxy")


@pytest.mark.parametrize(
    "env",
    [
        None,
        "catch",
        "atari:Adventure",
        "atari:Pong,max_steps=26999",
        "atari:Pong,sticky=0",
        "atari:Pong,max_steps=108000,sticky=0.5",
        "atari:Pong,frames=5",
    ],
)
def test_what_the_scores_are_not_of(env: str | None) -> None:
    assert games.reference(env) is None


def test_scores_of_the_table_do_not_follow_data_into_other_games() -> None:
    plain = {"transitions": 5, "random_return": None, "reference_return": None}
    pong = games.with_reference(plain, "atari:Pong")
    assert (pong["reference_return"], pong["reference_source"]) == (15.9, games.PROXY)
    assert games.with_reference(pong, None) == games.with_reference(pong, "atari:Pong") == pong
    assert games.with_reference(pong, "atari:Freeway")["reference_return"] == 26.2
    for other in ("atari:Pong,max_steps=20", "catch"):
        assert games.with_reference(pong, other) == plain
    own = {"random_return": 1.0, "reference_return": 9.0}  # of the agent that recorded
    for env in ("atari:Pong", "atari:Pong,max_steps=20", "catch"):
        assert games.with_reference(own, env) == own


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pong", "Did you mean 'atari:Pong'"),
        ("BeamRidr", "Did you mean 'atari:BeamRider'"),
        ("Pong,stikcy=1", "unknown setting 'stikcy'; known: max_steps, sticky"),
        ("Pong,max_steps=many", "max_steps needs a number"),
        ("Pong,sticky=1.5", r"sticky lies in \[0, 1\]"),
    ],
)
def test_what_cannot_be_made(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs.load(f"atari:{name}")


@pytest.mark.parametrize("package", ["ale_py.roms", "cv2"])
def test_a_missing_package_names_its_extra(package: str, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r'pip install "rbve\[atari\]"'):
        envs.load("atari:Pong")
