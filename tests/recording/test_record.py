"""Recording: priorities, the online agent against a slow reference, stores that are exact."""

from __future__ import annotations

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
import optax
import pytest

from rbve import algorithms
from rbve.data import Dataset, Episode, load
from rbve.data.transitions import View, transitions
from rbve.envs.base import Env, Step
from rbve.networks import build
from rbve.policy import Policy
from rbve.recording import online_dqn, priorities, record

QUICK = online_dqn.Options(hidden=(8,), batch_size=16, min_replay=100)


# Priorities


@pytest.mark.parametrize("capacity", [1, 16, 17, 300, 5000])
def test_the_tree_is_a_running_sum(capacity: int) -> None:
    rng = np.random.default_rng(0)
    # Whole numbers: sums are exact, so every boundary can be hit.
    leaves = np.zeros(capacity)
    tree = priorities.empty(capacity)
    write = jax.jit(priorities.write)
    for _ in range(4):
        index = rng.integers(0, capacity, 40)
        value = (index * 7 + rng.integers(5)) % 5  # equal indices carry equal values
        leaves[index] = value
        tree = write(tree, jnp.asarray(index), jnp.asarray(value, jnp.float32))
    np.testing.assert_array_equal(tree[0][:capacity], leaves)
    if leaves.sum() == 0:
        leaves[0] = 3
        tree = write(tree, jnp.asarray([0]), jnp.asarray([3.0]))
    assert float(priorities.total(tree)) == leaves.sum()
    edges = np.cumsum(leaves)
    mass = np.concatenate([np.arange(leaves.sum()), rng.uniform(0, leaves.sum(), 100)])
    mass = mass.astype(np.float32)
    found = np.asarray(jax.jit(priorities.find)(tree, jnp.asarray(mass)))
    np.testing.assert_array_equal(found, np.searchsorted(edges, mass, side="right"))
    assert (leaves[found] > 0).all()


def test_priorities_set_the_frequencies() -> None:
    rng = np.random.default_rng(1)
    leaves = rng.uniform(0, 1, 100) ** 3
    leaves[rng.integers(0, 100, 30)] = 0
    tree = priorities.write(
        priorities.empty(100), jnp.arange(100), jnp.asarray(leaves, jnp.float32)
    )
    draws = 50_000
    mass = jax.random.uniform(jax.random.key(0), (draws,)) * priorities.total(tree)
    counts = np.bincount(np.asarray(priorities.find(tree, mass)), minlength=100)
    assert counts[leaves == 0].sum() == 0
    used = leaves > 0
    expected = draws * leaves[used] / leaves.sum()
    deviation = np.sqrt(expected) + 1
    assert np.all(np.abs(counts[used] - expected) < 5 * deviation)


# The online agent


def wander() -> Env:
    """Random observations and rewards; episodes of random length terminate or are truncated."""

    def reset(key: jax.Array) -> Any:
        return jnp.int32(0), jax.random.normal(key, (3,))

    def step(state: Any, action: jax.Array, key: jax.Array) -> Any:
        key_obs, key_reward, key_end = jax.random.split(key, 3)
        end, kind = jax.random.uniform(key_end, (2,))
        ended = (end < 0.15) | (state == 29)
        return state + 1, Step(
            obs=jax.random.normal(key_obs, (3,)),
            reward=jax.random.normal(key_reward),
            terminated=ended & (kind < 0.5),
            truncated=ended & (kind >= 0.5),
            executed=action,
        )

    return Env("wander", (3,), ("a", "b"), 30, reset, step)


def episodes_so_far(state: online_dqn.State) -> Dataset:
    """All rows of the buffer; the running episode ends where it stands, as a truncated one."""
    row = int(state.row)
    taken, start = record.take_episodes(state.buffer, 0, row, 10_000)
    if row > start:
        steps = slice(start, row)
        taken.append(
            Episode.from_steps(
                np.asarray(state.buffer.obs[start : row + 1]),
                np.asarray(state.buffer.action[steps]),  # type: ignore[arg-type]
                np.asarray(state.buffer.reward[steps]),  # type: ignore[arg-type]
                terminated=False,
            )
        )
    plain = [episode._replace(executed=None) for episode in taken]
    return Dataset.from_episodes(plain, ("a", "b"))


def test_the_agent_learns_as_a_slow_reference() -> None:
    """Windows of n steps, double Q, Huber, priorities and importance weights, update by update."""
    options = online_dqn.Options(
        hidden=(6,), batch_size=12, min_replay=90, target_period=2, learning_rate=1e-2
    )
    n, per_update = options.n_step, options.steps_per_update
    agent = online_dqn.make_agent(wander(), 400, options)
    advance = jax.jit(agent.advance)
    warm_blocks = -(-options.min_replay // per_update) - 1
    state = advance(jax.jit(agent.init)(jax.random.key(4)), warm_blocks, 10_000)
    assert int(state.updates) == 0
    assert int(state.steps) == warm_blocks * per_update < options.min_replay
    params, target = state.params, state.target
    optimiser = optax.adam(options.learning_rate)
    opt = optimiser.init(params)
    size = len(state.tree[0])
    leaves, known = np.zeros(size, np.float32), set()
    seen_terminated = seen_truncated = False

    def q(params: jax.Array, obs: np.ndarray) -> jax.Array:
        return agent.unravel(params)(jnp.asarray(obs), jax.random.key(0)).q

    for update in range(1, 7):
        key = state.key
        for _ in range(per_update):
            key = jax.random.split(key, 4)[0]
        key_sample = jax.random.split(key)[1]
        state = advance(state, 1, 10_000)
        assert int(state.updates) == update
        data = episodes_so_far(state)
        columns = transitions(data, View(options.gamma, n), "state")
        place = {int(row): k for k, row in enumerate(columns.row)}
        running = int(state.first_row)
        complete = {row for row in place if row < running or row + n <= int(state.row)}
        for row in complete - known:
            leaves[row] = 1.0
        known |= complete
        tree = priorities.write(priorities.empty(size), jnp.arange(size), jnp.asarray(leaves))
        total = priorities.total(tree)
        mass = jax.random.uniform(key_sample, (options.batch_size,)) * total
        rows = np.asarray(priorities.find(tree, mass))
        at = np.array([place[int(row)] for row in rows])
        weight = (leaves[rows] / float(total)) ** -options.importance_exponent
        weight = weight / weight.max()
        next_obs = data.obs[columns.next_row[at]]
        best = np.argmax(q(params, next_obs), axis=-1)
        bootstrap = np.asarray(q(target, next_obs))[np.arange(len(at)), best]
        goal = columns.reward[at] + columns.discount[at] * bootstrap
        seen_terminated |= bool((columns.discount[at] == 0).any())
        short = columns.next_row[at] - columns.row[at] < n
        seen_truncated |= bool((short & (columns.discount[at] > 0)).any())

        def loss(
            params: jax.Array, obs: Any, action: Any, goal: Any, weight: Any
        ) -> tuple[jax.Array, jax.Array]:
            error = q(params, obs)[np.arange(len(action)), action] - goal
            size = jnp.abs(error)
            return jnp.mean(weight * jnp.where(size < 1, error**2 / 2, size - 0.5)), error

        grad, error = jax.grad(loss, has_aux=True)(
            params, data.obs[columns.row[at]], columns.action[at], goal, weight
        )
        direction, opt = optimiser.update(grad, opt)
        params = params + direction
        leaves[rows] = np.abs(np.asarray(error)) ** options.priority_exponent
        if update % options.target_period == 0:
            target = params
        np.testing.assert_allclose(state.params, params, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(state.target, target, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(state.tree[0], leaves, rtol=1e-3, atol=1e-4)
        # The fast code's own rounding must not pile up in the comparison.
        params, leaves = state.params, np.array(state.tree[0])
    assert seen_terminated
    assert seen_truncated


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """800 episodes of catch by the agent with its defaults."""
    path = tmp_path_factory.mktemp("recordings") / "catch"
    record.record_online("catch", path, 800)
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


# Stores


def quick(path: Path, **changes: Any) -> Dataset:
    wanted = {"episodes": 60, "options": QUICK, **changes}
    record.record_online("catch", path, **wanted)
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


@pytest.mark.parametrize("blocks", [1, 5, 10_000])
def test_a_seed_fixes_the_recording_and_chunks_do_not_matter(
    blocks: int, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "paced", lambda now, seconds: blocks)
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
    record.record_policy("catch", uniform / "whole", None, 50, seed=3)
    record.record_policy("catch", uniform / "kept", None, 50, seed=3, keep=0.1)
    assert_same(load(uniform / "kept"), load(uniform / "whole").subsample(0.1, seed=3))


def test_recording_again_over_an_online_recording(tmp_path: Path) -> None:
    path = tmp_path / "store"
    quick(path, episodes=12)
    with pytest.raises(ValueError, match="already holds a dataset"):
        quick(path, episodes=12)
    assert quick(path, episodes=13, overwrite=True).num_episodes == 13
    record.record_policy("catch", path, None, 5, overwrite=True)
    assert load(path).num_episodes == 5
    assert not (path / record.EXPERT).exists()


@pytest.mark.parametrize("online", [True, False])
def test_noise_is_executed_and_recorded(online: bool, tmp_path: Path) -> None:
    noise, episodes = 0.3, 300
    if online:
        data = quick(tmp_path / "noisy", episodes=episodes, noise=noise)
    else:
        record.record_policy("catch", tmp_path / "noisy", None, episodes, noise=noise)
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
    record.record_policy("catch", tmp_path / "store", policy, 100, epsilon)
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
        record.record_policy("catch", tmp_path / "policy", None, **wanted)
    assert not list(tmp_path.iterdir())


KILLED = """
import sys
from pathlib import Path
from rbve import backend
backend.prepare()
from rbve.recording import record
record.paced = lambda blocks, seconds: 8
record.record_online("catch", Path(sys.argv[1]), 800)
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
