"""The paper's online agent outside JAX: what its ring holds, when it explores, what it learns."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from support.recordings import record_online_host

from rbve import api, envs
from rbve.behaviours.kinds import online_dqn_host
from rbve.behaviours.kinds.online_dqn import exploration
from rbve.behaviours.kinds.online_dqn_host import HostDQNOptions, Learner, Replay
from rbve.behaviours.record import EXPERT
from rbve.data import load
from rbve.envs import atari
from rbve.policy import Policy
from rbve.training.batches.transitions import NUMBERS
from rbve.training.update import member_keys

QUICK = HostDQNOptions(
    batch_size=8,
    learning_rate=1e-2,
    target_period=3,
    epsilon_steps=40,
    min_replay=24,
    replay=60,
    stack=2,
    hidden=(8,),
)


def filled(capacity: int, lengths: list[int], stack: int = 3) -> tuple[Replay, list[Any]]:
    """Episodes whose observations are row numbers; even episodes terminate, odd are cut."""
    replay = Replay(capacity, (1,), np.int64, stack)
    rows: list[Any] = []  # (frames, action, reward, terminated, next frames) by row; None = final
    number = 0
    for episode, length in enumerate(lengths):
        seen = [0] * (stack - 1) + [number + k for k in range(length + 1)]
        replay.begin(np.array([number]))
        for k in range(length):
            terminated = episode % 2 == 0 and k == length - 1
            replay.add(number + k, 2.0 * (number + k), terminated, np.array([number + k + 1]))
            rows.append(
                (
                    seen[k : k + stack],
                    number + k,
                    2.0 * (number + k),
                    terminated,
                    seen[k + 1 :][:stack],
                )
            )
        rows.append(None)
        number += length + 1
    return replay, rows


@pytest.mark.parametrize("capacity", [100, 17, 9])
@pytest.mark.parametrize("on_disk", [False, True])
def test_the_ring_gives_back_what_was_put_in(capacity: int, on_disk: bool) -> None:
    replay, rows = filled(capacity, [4, 1, 6, 3, 5])
    if on_disk:
        held = replay.obs
        replay = Replay(capacity, (1,), np.int64, 3, on_disk=True)
        assert replay.obs.shape == held.shape
        assert isinstance(replay.obs, np.memmap)
        replay, rows = refill(replay)
    everything = np.arange(max(len(rows) - capacity, 0), len(rows))
    drawable = replay.drawable(everything)
    first = int(everything[0])
    starts = {0, 5, 7, 14, 18}
    for row, may in zip(everything, drawable, strict=True):
        reach = next(row - k for k in range(3) if row - k in starts or k == 2)
        assert may == (rows[row] is not None and reach >= first)
    good = everything[drawable]
    assert len(good) > 3
    picked = replay.pick(good, gamma=0.5, clip=False)
    for k, row in enumerate(good):
        frames, action, reward, terminated, later = rows[row]
        assert picked.frames[k, 0, :, 0].tolist() == frames
        assert picked.frames[k, 1, :, 0].tolist() == later
        found = {name: column[k] for name, column in NUMBERS.unpack(picked.numbers).items()}
        assert (found["action"], found["reward"]) == (action, reward)
        assert found["discount"] == (0 if terminated else 0.5)
        assert [found[name] for name in ("next_action", "has_next_action", "g")] == [0, False, 0]
    clipped = replay.pick(good, gamma=0.5, clip=True).numbers
    clipped = NUMBERS.column(clipped, "reward")
    np.testing.assert_array_equal(clipped, [min(rows[row][2], 1.0) for row in good])


def refill(replay: Replay) -> tuple[Replay, list[Any]]:
    other, rows = filled(replay.capacity, [4, 1, 6, 3, 5])
    for name in ("obs", "action", "reward", "terminated", "age"):
        getattr(replay, name)[:] = getattr(other, name)
    replay.rows = other.rows
    return replay, rows


def test_draws_are_uniform_over_what_may_be_drawn() -> None:
    replay, rows = filled(17, [4, 1, 6, 3, 5])
    held = np.arange(len(rows) - 17, len(rows))
    may = set(held[replay.drawable(held)].tolist())
    drawn = replay.draw(np.random.default_rng(0), 6000)
    counts = {row: int((drawn == row).sum()) for row in may}
    assert set(drawn.tolist()) == may
    expected = 6000 / len(may)
    assert max(abs(count - expected) for count in counts.values()) < 5 * np.sqrt(expected)


def test_a_ring_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="give at least 6"):
        Replay(5, (1,), np.uint8, 4)


def test_exploration_falls_along_a_line() -> None:
    paper = online_dqn_host.RLU_ATARI
    assert exploration(0, paper, min) == 1.0
    assert exploration(125_000, paper, min) == pytest.approx((1 + 0.01) / 2)
    assert exploration(250_000, paper, min) == pytest.approx(0.01)
    assert exploration(10**7, paper, min) == pytest.approx(0.01)
    assert exploration(0, HostDQNOptions(epsilon_steps=0), min) == 0.01


def test_the_preset_is_the_papers_table() -> None:
    paper = online_dqn_host.RLU_ATARI
    assert (paper.min_replay, paper.epsilon, paper.epsilon_steps) == (20_000, 0.01, 250_000)
    assert (paper.replay, paper.double, paper.batch_size) == (1_000_000, False, 256)
    assert (paper.target_period, paper.gamma, paper.stack) == (2500, 0.99, 4)
    assert paper.spec.settings == {"double": False}


def test_recorder_and_learner_of_one_seed_begin_apart() -> None:
    env = envs.load("gymnasium:CartPole-v1")
    agent = Learner(env, QUICK, 100, seed=5)  # type: ignore[arg-type]
    learner = agent.program.init(member_keys(5)[0]).params
    drawn = np.asarray(learner) != 0  # biases begin at 0
    assert np.all(np.asarray(agent.state.params)[drawn] != np.asarray(learner)[drawn])
    assert drawn.any()


def test_the_agent_learns_as_a_slow_reference() -> None:
    """Single DQN with Huber and Adam on the rows drawn, update by update, targets every third."""
    env = envs.load("gymnasium:CartPole-v1")
    agent = Learner(env, QUICK, 100, seed=1)  # type: ignore[arg-type]
    replay = agent.replay
    params = target = jnp.array(agent.state.params)
    optimiser = optax.adam(QUICK.learning_rate)
    opt = optimiser.init(params)
    updates: list[int] = []
    drawn: list[np.ndarray] = []
    true_draw = replay.draw

    def draw(rng: np.random.Generator, count: int) -> np.ndarray:
        drawn.append(true_draw(rng, count))
        updates.append(agent.steps)
        return drawn[-1]

    @jax.jit
    def q(params: jax.Array, frames: jax.Array) -> jax.Array:
        joined = jnp.concatenate([frames[:, 0], frames[:, 1]], axis=-1)
        return agent.program.unravel(params)(joined, jax.random.key(0)).q

    @jax.jit
    @jax.grad
    def gradient(params: jax.Array, frames: Any, action: Any, goal: Any) -> jax.Array:
        error = q(params, frames)[jnp.arange(8), action] - goal
        size = jnp.abs(error)
        return jnp.mean(jnp.where(size < 1, error**2 / 2, size - 0.5))

    true_learn = agent.learn

    def learn(picked: Any) -> None:
        nonlocal params, target, opt
        row = drawn[-1]
        place = row % replay.capacity
        assert (replay.action[place] >= 0).all()
        best = np.asarray(q(target, picked.frames[:, 1])).max(axis=1)
        reward = np.clip(replay.reward[place], -1, 1)
        goal = reward + np.where(replay.terminated[place], 0, 0.99) * best
        grad = gradient(params, picked.frames[:, 0], replay.action[place], goal)
        direction, opt = optimiser.update(grad, opt)
        params = params + direction
        if len(drawn) % QUICK.target_period == 0:
            target = params
        true_learn(picked)
        np.testing.assert_allclose(agent.state.params, params, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(agent.state.target, target, rtol=1e-3, atol=1e-5)
        params = jnp.array(agent.state.params)
        target = jnp.array(agent.state.target)

    replay.draw, agent.learn = draw, learn  # type: ignore[method-assign]
    for episode in agent:
        assert episode.reward.sum() == len(episode.reward) - 1
        if len(updates) > 8:
            break
    # From step 24 on, every fourth step.
    assert updates == list(range(24, 4 * len(updates) + 21, 4))
    assert len(updates) > 8


def test_recorded_episodes_and_the_policy_beside_them(tmp_path: Path) -> None:
    name = "gymnasium:CartPole-v1"
    record_online_host(name, tmp_path / "one", 12, seed=3, options=QUICK)
    data = load(tmp_path / "one")
    assert data.num_episodes == 12
    assert data.terminated.all()
    assert data.provenance["behaviour"] == "online dqn"
    assert data.provenance["agent"]["min_replay"] == 24
    assert data.provenance["diverged_at"] == -1
    decided = data.action >= 0
    assert data.propensity is not None
    steps = np.arange(decided.sum())
    epsilon = np.maximum(1 - 0.99 * np.minimum(steps / 40, 1), 0.01)
    rare = np.isclose(data.propensity[decided], epsilon / 2, rtol=1e-4)
    often = np.isclose(data.propensity[decided], 1 - epsilon / 2, rtol=1e-4)
    assert (rare | often).all()
    record_online_host(name, tmp_path / "two", 12, seed=3, options=QUICK)
    np.testing.assert_array_equal(load(tmp_path / "two").obs, data.obs)
    record_online_host(name, tmp_path / "other", 12, seed=4, options=QUICK)
    assert (
        load(tmp_path / "other").obs.shape != data.obs.shape
        or (load(tmp_path / "other").obs != data.obs).any()
    )
    steps = int(data.offsets[5]) - 5 + 2  # of five episodes, and two of the sixth
    by_steps = dataclasses.replace(QUICK, steps=steps)
    record_online_host(name, tmp_path / "steps", None, seed=3, options=by_steps)
    np.testing.assert_array_equal(load(tmp_path / "steps").obs, data.obs[: data.offsets[5]])
    policy = Policy.load(tmp_path / "one" / EXPERT)
    assert policy.obs_shape == (8,)
    assert api.evaluate(policy, name, episodes=3)["return"] >= 1


def test_atari_frames_are_held_once(tmp_path: Path) -> None:
    pytest.importorskip("ale_py", reason='needs pip install "rbve[atari]"')
    options = HostDQNOptions(
        batch_size=4, min_replay=20, replay=50, epsilon_steps=30, torso="mlp", hidden=(8,)
    )
    name = "atari:Pong,max_steps=30"
    record_online_host(name, tmp_path / "pong", 2, options=options)
    data = load(tmp_path / "pong")
    assert data.obs.shape == (62, 84, 84, 1)
    assert data.obs.dtype == np.uint8
    assert not data.terminated.any()
    policy = Policy.load(tmp_path / "pong" / EXPERT)
    assert policy.obs_shape == (84, 84, 4)
    assert "reference" not in data.provenance
    assert "normalised_return" not in api.evaluate(policy, "atari:Pong,max_steps=9", episodes=1)


def test_scores_of_whole_games_are_normalised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ale_py", reason='needs pip install "rbve[atari]"')
    monkeypatch.setattr(atari, "MAX_STEPS", 30)  # whole games, as if they were so short
    options = HostDQNOptions(batch_size=4, min_replay=99, replay=50, torso="mlp", hidden=(8,))
    record_online_host("atari:Pong", tmp_path / "pong", 1, options=options)
    data = load(tmp_path / "pong")
    assert len(data.action) == 31
    assert data.provenance["reference"]["source"].startswith("proxy")
    policy = Policy.load(tmp_path / "pong" / EXPERT)
    found = api.evaluate(policy, "atari:Pong", episodes=1)
    assert found["normalised_return"] == pytest.approx(100 * (found["return"] + 20.7) / 36.6)
    assert found["normalised_by"].startswith("proxy")
    assert "normalised_return" not in api.evaluate(policy, "atari:Bowling", episodes=1)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("catch", {}, "runs inside JAX"),
        ("gymnasium:CartPole-v1", {"episodes": 0}, "at least 1"),
        ("gymnasium:Taxi-v4", {}, "masks actions"),
    ],
)
def test_what_cannot_be_recorded(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        record_online_host(name, tmp_path / "x", **{"episodes": 2, "options": QUICK, **changes})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"preset": "rlu"}, "preset is rlu-atari or rlu-dmlab, an online agent; got 'rlu'"),
        ({"preset": "rlu-dmlab", "policy": "uniform"}, "is itself the agent .* leave policy out"),
        ({"preset": "rlu-atari", "policy": "uniform"}, "is itself the agent .* leave policy out"),
        ({"policy": "uniform", "steps": 5}, "of an online agent; of another policy give episodes"),
        ({"preset": "rlu-atari", "steps": 5, "episodes": 6}, "one of episodes and steps; got 6 "),
        ({"preset": "rlu-atari", "steps": 0}, "steps must be at least 1; got 0"),
        ({"preset": "rlu-atari", "steps": 5, "keep": 0.5}, "where their number is given"),
        ({"preset": "rlu-atari", "steps": 2}, "no episode ended within 2 steps"),
        ({}, "--policy FILE or, where one plays it, --policy script"),
        ({"policy": "r2d2"}, "online DQN without memory"),
    ],
)
def test_choices_that_do_not_go_together(
    choices: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        api.record("gymnasium:CartPole-v1", tmp_path / "y", **choices)
    assert not list(tmp_path.iterdir())  # an empty store would be in the next one's way


def test_large_rings_lie_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is room."""
    monkeypatch.setattr(online_dqn_host, "IN_MEMORY", 799)
    assert not isinstance(Replay(99, (1,), np.int64, 3).obs, np.memmap)
    assert isinstance(Replay(100, (1,), np.int64, 3).obs, np.memmap)
    full = shutil.disk_usage("/")._replace(free=800)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    assert not isinstance(Replay(100, (1,), np.int64, 3).obs, np.memmap)
