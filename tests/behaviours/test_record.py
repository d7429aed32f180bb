"""Recording into stores: complete, exact, and the same after a kill."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from support.recordings import record_online, record_online_memory, record_policy
from support.tiers import first_and_slow

from rbve import algorithms
from rbve.algorithms import NoOptions
from rbve.behaviours import online, r2d2_options, record
from rbve.behaviours.kinds import online_dqn as dqn
from rbve.behaviours.online import SnapshotJudge
from rbve.data import Dataset, load, write
from rbve.envs.base import Env, Step
from rbve.evaluation.rollout import random_return
from rbve.networks import build
from rbve.policy import Policy
from rbve.training.update import member_keys

QUICK = dqn.DQNOptions(hidden=(8,), batch_size=16, min_replay=100)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """800 episodes of catch by the agent with its defaults."""
    path = tmp_path_factory.mktemp("recordings") / "catch"
    record_online("catch", path, 800)
    return path


def test_the_agent_learns_catch(learned: Path) -> None:
    data = load(learned)
    assert data.num_episodes == 800
    assert data.provenance["finished"]
    assert data.episode_return[:100].mean() < 0
    assert data.episode_return[-200:].mean() > 0.3
    reference = data.provenance["reference"]
    assert -1 < reference["random"] < -0.4
    assert reference["online"] > 0.3
    expert = Policy.load(learned / record.EXPERT)
    assert expert.info["return"] == reference["online"]
    # Evaluated anew, it is by the discount it learned with.
    assert expert.info["job"]["view"]["gamma"] == data.provenance["agent"]["gamma"]


@pytest.mark.slow
def test_recorder_and_learner_of_one_seed_begin_apart(tmp_path: Path) -> None:
    """Else the learner would begin with the weights that chose the data."""
    idle = dataclasses.replace(QUICK, min_replay=10**6)  # the best snapshot is the first network
    record_online("catch", tmp_path / "dqn", 2, seed=5, options=idle)
    memory = r2d2_options.R2D2Options(
        memory=8, hidden=(6,), actors=2, chunk=5, min_replay=10**6, replay=300, steps=60
    )
    record_online_memory("memory_len:3", tmp_path / "r2d2", seed=5, options=memory)
    for folder in ("dqn", "r2d2"):
        recorder = Policy.load(tmp_path / folder / record.EXPERT)
        shapes = (recorder.obs_shape, len(recorder.actions))
        learner = build(
            *shapes, "q", NoOptions(), recorder.hidden, member_keys(5)[0], memory=recorder.memory
        )
        pairs = zip(*map(jax.tree.leaves, (recorder.network, learner)), strict=True)
        weights = [(one, other) for one, other in pairs if one.ndim > 1]
        assert weights
        for one, other in weights:
            assert np.all(np.asarray(one) != np.asarray(other))


# Stores


def quick(path: Path, **changes: Any) -> Dataset:
    wanted = {"episodes": 60, "options": QUICK, **changes}
    record_online("catch", path, **wanted)
    return load(path)


def assert_same(one: Dataset, other: Dataset) -> None:
    for name in ("obs", "action", "executed", "reward", "offsets", "terminated", "episode_return"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.actions == other.actions


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / "quick"
    quick(path)
    return path


@pytest.mark.parametrize("blocks", first_and_slow([5, 1, 10_000]))
def test_a_seed_fixes_the_recording_and_chunks_do_not_matter(
    blocks: int, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(online, "paced", lambda now, seconds: blocks)
    again = quick(tmp_path / "again")
    first = load(recorded)
    assert_same(first, again)
    assert first.provenance == again.provenance
    one, other = (Policy.load(p / record.EXPERT) for p in (recorded, tmp_path / "again"))
    obs = np.random.default_rng(0).random((4, 10, 5))
    np.testing.assert_array_equal(one.scores(obs), other.scores(obs))


def test_seeds_record_different_episodes(recorded: Path, tmp_path: Path) -> None:
    first, other = load(recorded), quick(tmp_path / "other", seed=1)
    assert first.num_episodes == other.num_episodes == 60
    assert not np.array_equal(first.action, other.action)


def test_keep_is_a_subsample_of_the_whole(recorded: Path, tmp_path: Path) -> None:
    kept = quick(tmp_path / "kept", keep=0.1)
    assert kept.num_episodes == 6
    assert_same(kept, load(recorded).subsample(0.1, seed=0))
    uniform = tmp_path / "uniform"
    record_policy("catch", uniform / "whole", None, 50, seed=3)
    record_policy("catch", uniform / "kept", None, 50, seed=3, keep=0.1)
    assert_same(load(uniform / "kept"), load(uniform / "whole").subsample(0.1, seed=3))


@pytest.mark.slow
def test_recording_again_over_an_online_recording(tmp_path: Path) -> None:
    path = tmp_path / "store"
    quick(path, episodes=12)
    with pytest.raises(ValueError, match="already holds a dataset"):
        quick(path, episodes=12)
    assert quick(path, episodes=13, overwrite=True).num_episodes == 13
    record_policy("catch", path, None, 5, overwrite=True)
    assert load(path).num_episodes == 5
    assert not (path / record.EXPERT).exists()


def test_the_old_recording_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path, link = tmp_path / "store", tmp_path / "link"
    link.symlink_to(path)
    quick(link, episodes=12)
    episodes = []

    def stop(progress: record.Progress) -> None:
        episodes.append(load(link).num_episodes)
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        record_policy("catch", link, None, 30, overwrite=True, on_progress=stop)
    assert episodes == [12]
    assert load(path).num_episodes == 12
    assert (path / record.EXPERT).exists()
    record_policy("catch", link, None, 30, overwrite=True)
    assert load(path).num_episodes == 30
    assert link.is_symlink()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link", "store"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_store_has_one_recorder_at_a_time(tmp_path: Path, overwrite: bool) -> None:
    path = tmp_path / "store"
    if overwrite:
        record_policy("catch", path, None, 3)
    refused = []

    def second(progress: record.Progress) -> None:
        with pytest.raises(ValueError, match="store: is being written by another process"):
            record_policy("catch", path, None, 4, overwrite=True)
        with pytest.raises(ValueError, match="store: is being written by another process"):
            write(load(path), path, overwrite=True)
        refused.append(progress.episodes)

    record_policy("catch", path, None, 5, overwrite=overwrite, on_progress=second)
    assert refused
    assert load(path).num_episodes == 5


def test_references_are_not_above_what_can_be_reached() -> None:
    """A mean of 32-bit numbers gives 1001.00006."""

    def step(state: Any, action: Any, key: Any) -> Any:
        over = jnp.bool_(True)
        return state, Step(jnp.zeros(2), jnp.float32(1001), over, ~over, action)

    env = Env("ends", (2,), ("a", "b"), 1, lambda key: ((), jnp.zeros(2)), step)
    agent = dqn.make_agent(env, 100, QUICK)
    judge = SnapshotJudge(env, agent.unravel, 0.99, 0, hidden=QUICK.hidden)
    judge.look(ravel_pytree(agent.init(jax.random.key(0)).params)[0])
    assert judge.looks[0][0] == judge.verdict()[0] == random_return(env) == 1001.0


@pytest.mark.parametrize("online", [True, False])
def test_noise_is_executed_and_recorded(online: bool, tmp_path: Path) -> None:
    noise, episodes = 0.3, 300
    if online:
        data = quick(tmp_path / "noisy", episodes=episodes, noise=noise)
    else:
        record_policy("catch", tmp_path / "noisy", None, episodes, noise=noise)
        data = load(tmp_path / "noisy")
    decided = data.action >= 0
    assert decided.sum() == 9 * episodes
    assert data.executed is not None
    np.testing.assert_array_equal(data.executed >= 0, decided)
    rate = np.mean(data.action[decided] != data.executed[decided])
    # A struck action is one of three, so a third of the strikes leaves it as it was.
    assert rate == pytest.approx(noise * 2 / 3, abs=5 * np.sqrt(0.2 * 0.8 / (9 * episodes)))
    for index in range(5):
        episode = data.episode(index)
        assert episode.executed is not None
        paddle = [int(np.argmax(board[-1])) for board in episode.obs[:-1]]
        moves = [min(max(p + a - 1, 0), 4) for p, a in zip(paddle, episode.executed, strict=False)]
        assert moves[:-1] == paddle[1:]


def make_policy(seed: int = 0) -> Policy:
    algorithm = algorithms.load("bve")
    network = build((10, 5), 3, "q", algorithm.options(), (8,), jax.random.key(seed))
    names = ("left", "stay", "right")
    return Policy(algorithm, algorithm.options(), algorithm.config(), network, (10, 5), names, (8,))


@pytest.mark.parametrize("epsilon", [0.0, 0.25])
def test_propensities_of_a_policy(epsilon: float, tmp_path: Path) -> None:
    policy = make_policy()
    record_policy("catch", tmp_path / "store", policy, 100, epsilon)
    data = load(tmp_path / "store")
    decided = data.action >= 0
    best = policy.act(data.obs[decided]) == data.action[decided]
    assert data.propensity is not None
    expected = epsilon / 3 + (1 - epsilon) * best
    np.testing.assert_allclose(data.propensity[decided], expected, rtol=1e-6)
    share = 1 - epsilon + epsilon / 3
    assert best.mean() == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / 900))


def test_propensities_of_the_uniform_policy(catch: Dataset) -> None:
    decided = catch.action >= 0
    assert catch.propensity is not None
    np.testing.assert_allclose(catch.propensity[decided], 1 / 3, rtol=1e-6)
    counts = np.bincount(catch.action[decided], minlength=3)
    assert np.abs(counts - 180).max() < 5 * np.sqrt(540 * 2 / 9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"episodes": 0}, "at least 1"),
        ({"keep": 0.0}, "share of episodes"),
        ({"noise": 2.0}, "probability"),
    ],
)
def test_what_cannot_be_recorded(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        quick(tmp_path / "online", **changes)
    wanted = {"episodes": 5, **changes}
    with pytest.raises(ValueError, match=message):
        record_policy("catch", tmp_path / "policy", None, **wanted)
    assert not list(tmp_path.iterdir())


def test_too_few_steps_leave_no_empty_store(tmp_path: Path) -> None:
    """An episode of catch takes 9. The folder must be free for the next try."""
    few = dataclasses.replace(QUICK, steps=3)
    with pytest.raises(ValueError, match=r"catch: no episode ended within 3 steps, .* --steps"):
        record_online("catch", tmp_path / "few", options=few)
    assert not list(tmp_path.iterdir())


KILLED = """
import sys
from pathlib import Path
from rbve import backend
backend.prepare()
from rbve.behaviours import online
from rbve.behaviours.kinds.online_dqn import OnlineDQN
from rbve.behaviours.record import RecordingPlan, record
online.paced = lambda blocks, seconds: 8
record(OnlineDQN(), RecordingPlan("catch", Path(sys.argv[1]), 800))
"""


def test_killed_while_recording(learned: Path, tmp_path: Path) -> None:
    path = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)])
    try:
        patience = time.monotonic() + 120
        while not (path / "manifest.json").exists() or held(path) < 100:
            assert process.poll() is None
            assert time.monotonic() < patience
            time.sleep(0.01)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    whole, left = load(learned), load(path)
    assert 100 <= left.num_episodes < 800
    assert not left.provenance["finished"]
    assert_same(left, whole.select(np.arange(left.num_episodes), "first"))


def held(path: Path) -> int:
    return json.loads((path / "manifest.json").read_text())["episodes"]
