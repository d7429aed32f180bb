"""The online agent with memory: what it records, what it learns from."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.recordings import record_online_memory

from rbve import api, envs, load
from rbve.behaviours import r2d2, r2d2_options
from rbve.behaviours.r2d2 import ActorRows, sequence_batch
from rbve.behaviours.record import EXPERT
from rbve.cli.record import command as record
from rbve.data.manifest import fingerprint
from rbve.networks.recurrent import Memory, Seen
from rbve.policy import Policy

SMALL = r2d2_options.R2D2Options(
    memory=8, hidden=(6,), actors=4, chunk=5, burn_in=1, train=2, batch_size=4, n_step=3,
    target_period=3, steps_per_update=20, min_replay=100, replay=300, steps=800,
)  # fmt: skip
GAMMA = 0.9


def test_the_ladder_of_exploration() -> None:
    found = np.asarray(r2d2_options.ladder(8))
    np.testing.assert_allclose(found, [0.4**k for k in range(1, 9)], rtol=1e-5)
    assert r2d2_options.ladder(1) == pytest.approx(0.4)


def test_exploration_comes_down_to_the_ladder() -> None:
    options = dataclasses.replace(SMALL, actors=8, explore=1000)
    rungs = np.array([0.4**k for k in range(1, 9)])
    for lived, done in [(0, 0.0), (250, 0.25), (1000, 1.0), (5000, 1.0)]:
        found = r2d2_options.shares(options, jnp.int32(lived))
        np.testing.assert_allclose(found, 1 - done * (1 - rungs), rtol=1e-4)
    options = dataclasses.replace(options, explore=0)
    np.testing.assert_allclose(r2d2_options.shares(options, jnp.int32(0)), rungs, rtol=1e-6)


@pytest.mark.parametrize(
    ("explore", "random"),
    [pytest.param(0, [False] * 3, marks=pytest.mark.slow), (90, [True, False, False])],
)
def test_actors_act_by_their_share(explore: int, random: list[bool]) -> None:
    """The last actor's ε is .4⁸ in the end; a chunk has 30 steps of 3 actors."""
    options = dataclasses.replace(
        SMALL, actors=3, chunk=30, min_replay=10**6, explore=explore, replay=1000
    )
    agent = r2d2.make_agent(envs.load("memory_len:3"), options)  # type: ignore[arg-type]
    start = agent.init(jax.random.key(1))
    state = jax.jit(agent.advance)(start._replace(params=0 * start.params), 3)
    last = np.asarray(state.ring.action)[:3, :, -1]  # all values equal: the greedy action is 0
    assert [bool((chunk == 1).any()) for chunk in last] == random


def test_levels_that_pay_once_are_looked_about_in_first() -> None:
    grid = r2d2_options.default_options("xminigrid:MiniGrid-MemoryS8")
    assert (grid.explore, grid.min_replay, grid.replay) == (100_000, 20_000, 500_000)
    assert (grid.gamma, grid.steps_per_update, grid.learning_rate) == (0.97, 16, 5e-4)
    assert (grid.rows, grid.burn_in * grid.chunk, grid.memory, grid.n_step) == (60, 20, 64, 5)
    rooms = r2d2_options.default_options("xminigrid:MiniGrid-FourRooms")
    assert rooms == dataclasses.replace(grid, gamma=0.98, steps=900_000)
    assert r2d2_options.default_options("collect:few") == r2d2_options.R2D2Options()
    assert r2d2_options.R2D2Options().explore == 0


def test_the_papers_numbers() -> None:
    paper = r2d2_options.PAPER
    assert paper.rows == 120
    assert paper.burn_in * paper.chunk == 40
    assert (paper.batch_size, paper.min_replay, paper.target_period) == (32, 600_000, 400)
    assert (paper.priority_exponent, paper.importance_exponent) == (0.9, 0.6)
    env: Any = envs.load("collect:few")
    agent = r2d2.make_agent(env, paper)
    state = jax.eval_shape(agent.init, jax.random.key(0))
    after = jax.eval_shape(agent.advance, state, 1)  # as a whole, though nothing is computed
    assert jax.tree.map(lambda leaf: leaf.shape, after) == jax.tree.map(
        lambda leaf: leaf.shape, state
    )
    assert state.actors.memory.hidden.shape == (512, 256)


def test_the_papers_agent_is_a_preset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []

    def make_agent(env: Any, options: r2d2_options.R2D2Options) -> None:
        asked.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr(r2d2, "make_agent", make_agent)
    for steps in (None, 500_000):
        with pytest.raises(KeyboardInterrupt):
            api.record("collect:few", tmp_path / "data", preset="rlu-dmlab", steps=steps)
    whole, short = asked
    assert whole == r2d2_options.PAPER
    assert (short.steps, short.min_replay, short.memory) == (500_000, 3_000, 512)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"burn_in": 0, "train": 1}, "two chunks or more"),
        ({"burn_in": 2, "train": 0}, "one of them trained on"),
        ({"n_step": 10}, "windows of 10 steps do not fit into the 10 steps"),
    ],
)
def test_sequences_nothing_can_be_learned_from(choice: dict[str, int], message: str) -> None:
    env: Any = envs.load("memory_len:3")
    with pytest.raises(ValueError, match=message):
        r2d2.make_agent(env, dataclasses.replace(SMALL, **choice))  # type: ignore[arg-type]
    r2d2_options.check(dataclasses.replace(SMALL, burn_in=0, n_step=9))


def line(*episodes: tuple[list[float], bool]) -> ActorRows:
    """One actor's rows: rewards of the decisions, whether the last one terminated."""
    columns: dict[str, list[Any]] = {name: [] for name in ("action", "reward", "end", "final")}
    for rewards, terminated in episodes:
        columns["action"] += [*range(len(rewards)), -1]
        columns["reward"] += [*rewards, 0.0]
        columns["end"] += [*[False] * (len(rewards) - 1), terminated, False]
        columns["final"] += [*[False] * len(rewards), True]
    length = len(columns["action"])
    nothing = jnp.zeros((length, 1))
    action, reward, end, final = (jnp.asarray(columns[name])[:, None] for name in columns)
    return ActorRows(nothing, action, nothing, final, action, action, reward, end, final, None)


def test_windows_end_with_their_episode_and_are_dropped_at_the_sequences_end() -> None:
    rows = line(([1.0, 2.0], True), ([3.0, 4.0, 5.0], False), ([6.0, 7.0, 8.0], True))
    # Rows: 0 1 |2| 3 4 5 |6| 7 8 9 |10|; the last final row is cut off, with 9's termination known.
    rows = ActorRows(*(None if c is None else c[:10] for c in rows))
    inputs, batch = sequence_batch(rows, warm=1, n=3, gamma=GAMMA)
    wanted = {  # row: reward, discount, bootstrap row
        1: (2.0, 0.0, 2),
        3: (3 + GAMMA * 4 + GAMMA**2 * 5, GAMMA**3, 6),
        4: (4 + GAMMA * 5, GAMMA**2, 6),  # truncated: from the final observation
        5: (5.0, GAMMA, 6),
        7: (6 + GAMMA * 7 + GAMMA**2 * 8, 0.0, 9),  # terminated; where it ends does not matter
        8: (7 + GAMMA * 8, 0.0, 9),
        9: (8.0, 0.0, 9),
    }
    trained = [row for row in range(1, 10) if float(batch.weight[row - 1])]
    assert trained == list(wanted)
    for row, (reward, discount, later) in wanted.items():
        assert float(batch.reward[row - 1]) == pytest.approx(reward)
        assert float(batch.discount[row - 1]) == pytest.approx(discount)
        assert int(inputs.later[row - 1, 0]) == later
    cut = ActorRows(*(None if c is None else c[:9] for c in rows))
    _, batch = sequence_batch(cut, warm=0, n=3, gamma=GAMMA)
    assert not batch.weight[7:].any()  # their windows leave the sequence
    assert bool(batch.weight[5])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("r2d2") / "memory"
    record_online_memory("memory_len:3", out, options=SMALL)
    return out


def test_episodes_are_whole_and_follow_the_rules(recorded: Path) -> None:
    data = load(recorded)
    # 800 steps of 4 actors in chunks of 5: 40 chunks, 200 rows an actor, 5 rows an episode.
    assert data.num_episodes == 4 * 200 // 5
    assert set(data.lengths) == {4}
    assert data.terminated.all()
    for k in range(data.num_episodes):
        episode = data.episode(k)
        bit = episode.obs[0, 0, 2]
        assert abs(bit) == 1
        np.testing.assert_array_equal(episode.obs[2:, 0, 2], 0)
        right = (episode.action[3] == 1) == (bit > 0)
        np.testing.assert_array_equal(episode.reward, [0, 0, 0, 1 if right else -1, 0])
    assert {0, 1} == set(data.action[data.action >= 0])
    about = data.provenance
    assert about["behaviour"] == "online r2d2"
    assert about["reference"].keys() == {"online", "random"}
    agent = about["agent"]
    assert agent["epsilon"] == pytest.approx([0.4 ** (1 + 7 * k / 3) for k in range(4)])
    assert agent["priority"] == {"largest": 0.9, "mean": 0.1}
    assert (agent["actors"], agent["explore"]) == (4, 0)


def test_the_same_seed_records_the_same_data(recorded: Path, tmp_path: Path) -> None:
    record_online_memory("memory_len:3", tmp_path / "again", options=SMALL)
    assert fingerprint(tmp_path / "again") == fingerprint(recorded)
    assert Policy.load(recorded / EXPERT).memory == 8


def test_sequences_carry_the_memory_their_actor_had() -> None:
    """Unrolled from it with the weights that acted, a sequence gives the next chunk's memory."""
    env = envs.load("memory_len:3")
    quiet = dataclasses.replace(SMALL, min_replay=10**6)  # no learning: the weights stay
    agent = r2d2.make_agent(env, quiet)  # type: ignore[arg-type]
    state = jax.jit(agent.advance)(agent.init(jax.random.key(3)), 4)
    network = agent.unravel(state.params)
    for chunk in range(3):
        rows = jax.tree.map(lambda column, k=chunk: column[k], state.ring)
        memory = Memory(*(held[chunk] for held in state.memories))
        seen = Seen(rows.obs, rows.last_action, rows.last_reward, rows.first)
        _, after = network.unroll(seen, memory)
        np.testing.assert_allclose(after.cell, state.memories.cell[chunk + 1], atol=1e-6)
        assert float(jnp.abs(after.cell).max()) > 1e-3
    # A row's last action and reward are those of the row before, none where an episode begins.
    flat = jax.tree.map(
        lambda column: np.asarray(column[:4]).reshape(20, *column.shape[2:]), state.ring
    )
    first = flat.first[1:]
    np.testing.assert_array_equal(flat.last_action[1:], np.where(first, -1, flat.action[:-1]))
    np.testing.assert_array_equal(flat.last_reward[1:], np.where(first, 0, flat.reward[:-1]))
    np.testing.assert_array_equal(first, flat.final[:-1])


def test_only_whole_sequences_are_learned_from() -> None:
    """Leaves: chunk · actors + actor; a sequence needs 3 chunks, and the ring holds 15."""
    env = envs.load("memory_len:3")
    agent = r2d2.make_agent(env, dataclasses.replace(SMALL, min_replay=10**6))  # type: ignore[arg-type]
    advance = jax.jit(agent.advance)
    state = advance(agent.init(jax.random.key(3)), 5)

    def starts(state: Any) -> list[int]:
        leaves = np.asarray(state.tree[0])[: 15 * 4].reshape(15, 4)
        assert (leaves.min(axis=1) == leaves.max(axis=1)).all()
        return np.flatnonzero(leaves[:, 0]).tolist()

    assert SMALL.chunks == 15
    assert starts(state) == [0, 1, 2]
    # Chunks 15 and 16 overwrite 0 and 1: sequences from 2 to 14 are left, 15 and 16 have begun.
    assert starts(advance(state, 12)) == list(range(2, 15))


def test_what_a_sequence_counts() -> None:
    """.9 of the largest error and .1 of the mean over the steps that are valid."""
    error = jnp.array([[3.0, 0.0], [1.0, 0.5], [0.0, 0.0]])
    valid = jnp.array([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(r2d2_options.mixed(error, valid), [2.9, 0.45 + 0.05 / 3], rtol=1e-6)
    assert r2d2_options.mixed(jnp.zeros((3, 1)), jnp.zeros((3, 1))).tolist() == [0.0]


def test_priorities_follow_what_was_learned() -> None:
    """Only sequences that were drawn count otherwise than fresh ones, and the target is copied."""
    env = envs.load("memory_len:3")
    agent = r2d2.make_agent(env, dataclasses.replace(SMALL, min_replay=300))  # type: ignore[arg-type]
    advance = jax.jit(agent.advance)
    before = advance(agent.init(jax.random.key(3)), 14)  # 280 steps, 12 first chunks of 4 actors
    after = advance(before, 1)  # one learner step for 20 steps of the environment
    assert int(before.updates) == 0
    assert int(after.updates) == 1
    fresh = float(np.asarray(before.tree[0]).max())
    leaves = np.asarray(after.tree[0])[: 13 * 4]
    learned = leaves[leaves != fresh]
    assert 1 <= len(learned) <= SMALL.batch_size
    assert (learned > 0).all()
    np.testing.assert_array_equal(after.target, before.params)
    assert int(SMALL.target_period) == 3
    third = advance(after, 2)
    np.testing.assert_array_equal(third.target, third.params)
    assert not np.array_equal(third.params, before.params)


def test_a_short_recording_learns_as_early_in_proportion() -> None:
    full = r2d2_options.default_options("xminigrid:MiniGrid-DoorKey-5x5")
    tenth = r2d2_options.shortened(full, full.steps // 10)
    assert (tenth.steps, tenth.explore, tenth.min_replay) == (20_000, 10_000, 2_000)
    longer = r2d2_options.shortened(full, 4 * full.steps)
    assert (longer.explore, longer.min_replay) == (full.explore, full.min_replay)


@pytest.mark.slow
def test_it_learns_to_remember(tmp_path: Path) -> None:
    options = dataclasses.replace(
        SMALL, memory=16, actors=16, batch_size=16, chunk=6, steps=12_000, min_replay=1000,
        replay=20_000, learning_rate=3e-3, steps_per_update=32, target_period=50,
    )  # fmt: skip
    record_online_memory("memory_len:3", tmp_path / "data", options=options)
    reference = load(tmp_path / "data").provenance["reference"]
    assert reference["online"] > 0.9
    assert abs(reference["random"]) < 0.15


def test_the_help_tells_how_long_it_records() -> None:
    assert f"not --episodes: {r2d2_options.R2D2Options().steps:,} unless" in (record.__doc__ or "")


def test_too_few_steps_leave_no_empty_store(tmp_path: Path) -> None:
    few = dataclasses.replace(SMALL, steps=20)  # 5 of each actor
    with pytest.raises(ValueError, match="no episode ended within 20 steps of 4 actors"):
        record_online_memory("memory_len:30", tmp_path / "few", options=few)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_online_agent_with_memory_is_recorded_by_steps(tmp_path: Path) -> None:
    shares: list[float] = []
    api.record(
        "memory_len:3", tmp_path / "a", policy="r2d2", steps=960,
        on_progress=lambda progress: shares.append(progress.share),
    )  # fmt: skip
    # 16 actors in chunks of 12: 5 chunks, of whose 60 rows an actor 12 episodes are made.
    assert load(tmp_path / "a").num_episodes == 16 * 12
    assert shares[-1] == 1.0
    assert shares == sorted(shares)


def test_steps_are_an_online_agents(tmp_path: Path) -> None:
    api.record("catch", tmp_path / "b", policy="online", steps=95)
    assert load(tmp_path / "b").num_episodes == 10  # of 9 steps: the eleventh was running
    with pytest.raises(ValueError, match="of another policy give episodes"):
        api.record("catch", tmp_path / "c", policy="uniform", steps=10)
    with pytest.raises(ValueError, match="give one of episodes and steps; got 3 and 10"):
        api.record("catch", tmp_path / "c", policy="online", episodes=3, steps=10)
    with pytest.raises(ValueError, match="steps must be at least 1; got 0"):
        api.record("catch", tmp_path / "c", policy="online", steps=0)
