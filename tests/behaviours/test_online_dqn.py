"""The online agent: its priorities, its learning against a slow reference, its bounded buffer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from support.recordings import record_online
from support.tiers import first_and_slow

from rbve import envs
from rbve.behaviours import online, priorities
from rbve.behaviours.kinds import online_dqn as dqn
from rbve.behaviours.kinds.online_dqn import take_episodes
from rbve.data import Dataset, Episode, load
from rbve.data.transitions import View, transitions
from rbve.envs.base import Env, Step

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


class History:
    """Everything an agent has seen, copied out of its buffer block by block."""

    def __init__(self) -> None:
        self.taken: list[Episode] = []
        self.copied = 0

    def follow(self, state: dqn.State) -> Dataset:
        """The running episode ends where it stands, as a truncated one."""
        fresh, self.copied = take_episodes(state.buffer, self.copied, int(state.row))
        self.taken += fresh
        episodes = [each._replace(executed=None) for each in self.taken]
        if (row := int(state.row)) > self.copied:
            place = np.arange(self.copied, row + 1) % (len(state.buffer.action) - 1)
            episodes.append(
                Episode.from_steps(
                    np.asarray(state.buffer.obs)[place],
                    np.asarray(state.buffer.action)[place[:-1]],
                    np.asarray(state.buffer.reward)[place[:-1]],
                    terminated=False,
                )
            )
        return Dataset.from_episodes(episodes, ("a", "b"))


@pytest.mark.parametrize(
    "replay", [pytest.param(0, marks=pytest.mark.slow), 70], ids=["all rows", "the last rows"]
)
def test_the_agent_learns_as_a_slow_reference(replay: int) -> None:
    """Windows of n steps, double Q, Huber, priorities and importance weights, update by update."""
    options = dqn.DQNOptions(
        hidden=(6,),
        batch_size=12,
        min_replay=90,
        target_period=2,
        learning_rate=1e-2,
        replay=replay,
    )
    n, per_update = options.n_step, options.steps_per_update
    capacity = replay or 400
    agent = dqn.make_agent(wander(), capacity, options)
    advance = jax.jit(agent.advance)
    warm_blocks = -(-options.min_replay // per_update) - 1
    state, history = jax.jit(agent.init)(jax.random.key(4)), History()
    for _ in range(warm_blocks):
        state = advance(state, dqn.Limits(1, copied=history.copied))
        history.follow(state)
    assert int(state.updates) == 0
    assert int(state.steps) == warm_blocks * per_update < options.min_replay
    params, target = ravel_pytree(state.params)[0], ravel_pytree(state.target)[0]
    optimiser = optax.adam(options.learning_rate)
    opt = optimiser.init(params)
    size, ring = len(state.tree[0]), capacity + 1
    priority: dict[int, float] = {}  # by row
    seen_terminated = seen_truncated = False

    def q(params: jax.Array, obs: np.ndarray) -> jax.Array:
        return agent.unravel(params)(jnp.asarray(obs), jax.random.key(0)).q

    for update in range(1, 7):
        key = state.key
        for _ in range(per_update):
            key = jax.random.split(key, 4)[0]
        key_sample = jax.random.split(key)[1]
        state = advance(state, dqn.Limits(1, copied=history.copied))
        assert int(state.updates) == update
        data = history.follow(state)
        columns = transitions(data, View(options.gamma, n), "state")
        place = {int(row): k for k, row in enumerate(columns.row)}
        running = int(state.first_row)
        complete = {row for row in place if row < running or row + n <= int(state.row)}
        # Forgotten is what the next act overwrites: its own row was written by the last one, which
        # wrote two if it ended an episode.
        oldest = int(state.row) + (running < int(state.row)) - ring + 1
        priority = {row: priority.get(row, 1.0) for row in complete if row >= oldest}
        row_at = {row % ring: row for row in priority}
        leaves = np.zeros(size, np.float32)
        leaves[[*row_at]] = [priority[row] for row in row_at.values()]
        tree = priorities.write(priorities.empty(size), jnp.arange(size), jnp.asarray(leaves))
        total = priorities.total(tree)
        mass = jax.random.uniform(key_sample, (options.batch_size,)) * total
        rows = np.asarray(priorities.find(tree, mass))
        at = np.array([place[row_at[int(row)]] for row in rows])
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
        np.testing.assert_allclose(ravel_pytree(state.params)[0], params, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ravel_pytree(state.target)[0], target, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(state.tree[0], leaves, rtol=1e-3, atol=1e-4)
        # The fast code's own rounding must not pile up in the comparison.
        params, leaves = ravel_pytree(state.params)[0], np.asarray(state.tree[0])
        priority = {row: float(leaves[place]) for place, row in row_at.items()}
    assert seen_terminated
    assert seen_truncated
    assert (oldest > 50) == bool(replay)


class NoJudge:
    """In place of the judge of snapshots, who takes longest to compile."""

    def __init__(self, env: Env, *given: Any, **form: Any) -> None:
        self.env, self.looks = env, 0

    def next_look(self, total: int) -> int:
        return -(-total * (self.looks + 1) // 3)

    def look(self, params: Any) -> None:
        self.looks += 1

    def verdict(self) -> tuple[float, Any]:
        assert self.looks == 3
        return 0.0, None

    def policy(self, *given: Any) -> NoJudge:
        return self

    def save(self, path: Path) -> None:
        path.touch()


def record_wander(
    path: Path, monkeypatch: pytest.MonkeyPatch, episodes: int | None, **options: Any
) -> Dataset:
    monkeypatch.setattr(envs, "load", lambda name, noise=0.0: wander())
    monkeypatch.setattr(online, "SnapshotJudge", NoJudge)
    monkeypatch.setattr(online, "random_return", lambda env: 0.0)
    wanted = dqn.DQNOptions(hidden=(6,), batch_size=12, **options)
    record_online("wander", path, episodes, seed=3, options=wanted)
    return load(path)


def assert_same(one: Dataset, other: Dataset) -> None:
    for name in ("obs", "action", "executed", "reward", "offsets", "terminated"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("blocks", first_and_slow([3, 1, 10_000]))
def test_a_bounded_buffer_loses_and_doubles_no_episode(
    blocks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that never learns acts the same whatever it remembers."""
    monkeypatch.setattr(online, "paced", lambda now, seconds: blocks)
    whole = record_wander(tmp_path / "whole", monkeypatch, 150, min_replay=10**6)
    # 62 rows: the ring goes round some fifteen times.
    small = record_wander(tmp_path / "small", monkeypatch, 150, min_replay=10**6, replay=62)
    assert whole.num_episodes == 150
    assert len(whole.obs) > 12 * 62
    assert len(np.unique(np.asarray(whole.obs)[:, 0])) == len(whole.obs)
    assert_same(whole, small)


@pytest.mark.slow
def test_chunks_do_not_change_what_a_bounded_agent_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for blocks in (1, 10_000):
        monkeypatch.setattr(online, "paced", lambda now, seconds, blocks=blocks: blocks)
        path = tmp_path / str(blocks)
        found.append(record_wander(path, monkeypatch, 100, min_replay=40, replay=70))
    assert_same(*found)


def test_a_recording_of_so_many_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = record_wander(tmp_path / "long", monkeypatch, 120, min_replay=40, replay=70)
    cut = record_wander(tmp_path / "cut", monkeypatch, None, min_replay=40, replay=70, steps=400)
    # Blocks of 8 steps: 400 are 50 of them, and the episode that runs then is left out.
    ends = np.cumsum(np.diff(long.offsets) - 1)
    count = int((ends <= 400).sum())
    assert cut.num_episodes == count
    assert_same(cut, long.select(np.arange(count), "first"))
    late = long.episode_return[-12:].mean()
    assert long.provenance["late_return"] == pytest.approx(late, rel=1e-5)


def test_a_buffer_too_small_and_a_share_of_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="does not hold an episode of 30 steps; give at least 62"):
        record_wander(tmp_path / "small", monkeypatch, 10, replay=61)
    options = dqn.DQNOptions(steps=100)
    with pytest.raises(ValueError, match="where their number is given"):
        record_online("catch", tmp_path / "kept", keep=0.5, options=options)
    assert not list(tmp_path.iterdir())


def test_exploration_falls() -> None:
    options = dqn.DQNOptions(hidden=(6,), epsilon=0.2, epsilon_steps=1000, min_replay=10**6)
    agent = dqn.make_agent(wander(), 9000, options)
    state = jax.jit(agent.advance)(
        jax.jit(agent.init)(jax.random.key(0)), dqn.Limits(500, steps=4000)
    )
    data = History().follow(state)
    decided = data.action >= 0
    scores = state.params(jnp.asarray(data.obs), jax.random.key(0)).q
    greedy = (np.argmax(scores, axis=-1) == data.action)[decided]
    # A random action is the greedy one half the time; ε falls from 1 to .2 over 1000 steps.
    for part, share in ((slice(0, 200), 0.92), (slice(800, 1000), 0.28), (slice(1000, None), 0.2)):
        rate = 1 - share / 2
        spread = 5 * np.sqrt(rate * (1 - rate) / len(greedy[part]))
        assert greedy[part].mean() == pytest.approx(rate, abs=spread)


def test_who_has_learned() -> None:
    returns = [0.0] * 20 + [6.0] * 2 + [1.0]  # 23 episodes: the last two are a tenth
    assert online.late_return(returns) == 3.5
    assert online.late_return([2.0]) == 2.0
    recorded = {"late_return": 3.5, "reference": {"random": 1.2, "online": 9.0}}
    assert not online.has_learned(recorded, 3.0)  # 3 × 1.2 = 3.6
    assert online.has_learned({**recorded, "late_return": 3.6 + 1e-9}, 3.0)
    assert online.has_learned(recorded, 2.5)
