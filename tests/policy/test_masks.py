"""No policy, explorer, recorder or noise takes an illegal action, and no metric counts one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.tiers import fast_and_slow

from rbve import algorithms, envs, ops
from rbve.behaviours.kinds import online_dqn as dqn
from rbve.behaviours.kinds.online_dqn import take_episodes
from rbve.behaviours.rollouts import inside_jax, on_host
from rbve.data import Dataset, Episode
from rbve.envs.base import Env, Step, with_action_noise
from rbve.evaluation.actors import UniformActor
from rbve.evaluation.rollout import EvaluationPlan, make_rollout
from rbve.evaluation.vector import Decision, VectorEnv, play
from rbve.policy import Policy
from rbve.spec import Spec
from rbve.training.run import POLICY, train_members

ACTIONS, STEPS = 4, 6


class State(NamedTuple):
    time: jax.Array
    bad: jax.Array  # an illegal action was executed


def legal(state: State) -> jax.Array:
    """Two neighbouring actions, other ones each step; none when it is over."""
    first = state.time % ACTIONS
    pair = jnp.arange(ACTIONS)
    return ((pair == first) | (pair == (first + 1) % ACTIONS)) & (state.time < STEPS)


def observe(state: State) -> jax.Array:
    return (jnp.arange(STEPS + 1) == state.time).astype(float)


def reset(key: jax.Array) -> tuple[State, jax.Array]:
    del key
    state = State(jnp.int32(0), jnp.zeros((), bool))
    return state, observe(state)


def step(state: State, action: jax.Array, key: jax.Array) -> tuple[State, Step]:
    del key
    allowed = legal(state)[action]
    after = State(state.time + 1, state.bad | ~allowed)
    return after, Step(
        obs=observe(after),
        reward=jnp.where(allowed, 0.0, -1000.0) + (action == 2),
        terminated=after.time >= STEPS,
        truncated=jnp.zeros((), bool),
        executed=jnp.asarray(action, jnp.int32),
    )


ENV = Env("pairs", (STEPS + 1,), ("a", "b", "c", "d"), STEPS, reset, step, legal)


def pairs(time: int) -> list[int]:
    return sorted({time % ACTIONS, (time + 1) % ACTIONS})


def assert_all_legal(episode: Episode) -> None:
    for time, action in enumerate(episode.action[:-1]):
        assert action in pairs(time)
    assert (episode.reward >= 0).all()
    assert episode.legal is not None
    assert [np.flatnonzero(row).tolist() for row in episode.legal[:-1]] == [
        pairs(time) for time in range(STEPS)
    ]
    assert not episode.legal[-1].any()


@pytest.fixture(scope="module")
def data() -> Dataset:
    (group,) = inside_jax(ENV, None, 32, 0.0, seed=1)
    return Dataset.from_episodes(group, ENV.actions)


@pytest.fixture(scope="module")
def trained(
    data: Dataset, small_job: Callable[..., Spec], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Policy]:
    found = {}
    for name in algorithms.names():
        folder = tmp_path_factory.mktemp(name)
        train_members([small_job(name, {"steps": 20, "every": 20, "env": None})], [data], [folder])
        found[name] = Policy.load(folder / POLICY)
    return found


def test_uniform_action_is_uniform_over_legal_ones() -> None:
    mask = jnp.array([False, True, False, True, True])
    u = jnp.linspace(0, 1, 3000, endpoint=False)
    found = np.asarray(ops.uniform_action(u, 5, jnp.broadcast_to(mask, (3000, 5))))
    assert np.bincount(found, minlength=5).tolist() == [0, 1000, 0, 1000, 1000]
    nearly_one = jnp.nextafter(jnp.float32(1), jnp.float32(0))
    assert int(ops.uniform_action(nearly_one, 5, mask)) == 4
    assert np.asarray(ops.uniform_action(jnp.array([0.0, 0.99]), 5)).tolist() == [0, 4]


def test_random_behaviour_is_recorded_with_its_masks(data: Dataset) -> None:
    for index in range(data.num_episodes):
        assert_all_legal(data.episode(index))
    assert data.propensity is not None
    assert set(data.propensity[data.action >= 0].tolist()) == {0.5}
    assert len({tuple(data.episode(k).action) for k in range(20)}) > 5  # and it is random


# In every algorithm's policy objects below; in rollouts, scores of its own and a usual one.
@pytest.mark.parametrize("name", fast_and_slow(algorithms.names(), {"bcq", "rbve"}))
@pytest.mark.parametrize("epsilon", [pytest.param(0.0, marks=pytest.mark.slow), 0.7])
def test_policies_act_legally_in_rollouts(
    name: str, epsilon: float, trained: dict[str, Policy]
) -> None:
    policy = trained[name]
    rollout = jax.jit(make_rollout(ENV, policy.act_function(), EvaluationPlan(20, epsilon, 0.9)))
    found = rollout(policy.network, policy.config, jax.random.key(0))
    assert (np.asarray(found["return"]) >= 0).all()
    (group,) = inside_jax(ENV, policy, 16, epsilon, seed=0)
    for episode in group:
        assert_all_legal(episode)


@pytest.mark.parametrize("name", algorithms.names())
def test_policy_objects_obey_masks(name: str, trained: dict[str, Policy], data: Dataset) -> None:
    policy = trained[name]
    obs = data.obs[:6]
    for only in range(ACTIONS):
        mask = np.arange(ACTIONS) == only
        assert policy.act(obs[0], legal=mask) == only
        assert policy.decide(obs[0], legal=mask) == "abcd"[only]
        assert np.asarray(policy.act(obs, legal=mask)).tolist() == [only] * 6
    rng = np.random.default_rng(0)
    masks = rng.random((6, ACTIONS)) < 0.5
    masks[:, 1] = True
    drawn = [policy.act(obs, 1.0, rng, masks) for _ in range(200)]
    taken = {(row, int(action)) for each in drawn for row, action in enumerate(np.asarray(each))}
    assert taken == {(int(row), int(action)) for row, action in np.argwhere(masks)}


@pytest.mark.parametrize("name", algorithms.names())
def test_policies_of_masked_data_have_to_be_told(name: str, trained: dict[str, Policy]) -> None:
    """Most of them would choose what no row of the data allows."""
    policy = trained[name]
    assert policy.masked
    obs = np.eye(STEPS + 1, dtype=np.float32)[:STEPS]
    with pytest.raises(ValueError, match="need legal="):
        policy.act(obs)
    allowed = [pairs(time) for time in range(STEPS)]
    chosen = policy.act(obs, legal=allowed)
    assert all(action in pair for action, pair in zip(np.asarray(chosen), allowed, strict=True))
    free = np.asarray(policy.act(obs, legal="all"))
    np.testing.assert_array_equal(free, policy.scores(obs, legal="all").argmax(axis=1))


def test_masks_that_cannot_be_obeyed(trained: dict[str, Policy], data: Dataset) -> None:
    policy = trained["rbve"]
    with pytest.raises(ValueError, match=r"each of 4 actions.*; got the shape \(3,\)"):
        policy.act(data.obs[0], legal=[True, False, True])
    with pytest.raises(ValueError, match="allows no action"):
        policy.act(data.obs[0], legal=[False] * ACTIONS)


def test_the_online_agent_obeys_masks() -> None:
    options = dqn.DQNOptions(min_replay=50, batch_size=16, epsilon=0.3)
    agent = dqn.make_agent(ENV, 2000, options)
    state = jax.jit(agent.advance)(agent.init(jax.random.key(0)), dqn.Limits(100, episodes=40))
    episodes, _ = take_episodes(state.buffer, 0, int(state.row), 40)
    assert len(episodes) == 40
    for episode in episodes:
        assert_all_legal(episode)
    assert int(state.updates) > 10


def test_the_online_target_leaves_illegal_actions_out() -> None:
    """Values of illegal next actions, moved by 1e6, leave the learner's step as it was."""
    options = dqn.DQNOptions(min_replay=16, batch_size=64, n_step=1, hidden=(8,))
    agent = dqn.make_agent(ENV, 400, options)
    state = jax.jit(agent.advance)(agent.init(jax.random.key(3)), dqn.Limits(2, episodes=40))
    assert state.buffer.legal is not None
    rows = np.asarray(state.buffer.legal[: int(state.row)])
    times = np.asarray(state.buffer.obs[: int(state.row)]).argmax(axis=1)
    for time, row in zip(times, rows, strict=True):
        assert np.flatnonzero(row).tolist() == (pairs(int(time)) if time < STEPS else [])


def test_noise_executes_legal_actions() -> None:
    noisy = with_action_noise(ENV, 1.0)
    (group,) = inside_jax(noisy, None, 32, 0.0, seed=5)
    executed = np.concatenate([episode.executed[:-1] for episode in group])
    times = np.concatenate([np.arange(STEPS)] * len(group))
    assert all(action in pairs(time) for time, action in zip(times, executed, strict=True))
    assert all((episode.reward >= 0).all() for episode in group)


def test_the_action_gap_is_between_legal_actions() -> None:
    def act(params: Any, config: Any, obs: jax.Array, legal: jax.Array, key: jax.Array) -> Any:
        # Values 0, 1, 10, 100: the gap of a legal pair is 1, 9, 90 or, around the corner, 100.
        q = jnp.broadcast_to(jnp.array([0.0, 1.0, 10.0, 100.0]), (obs.shape[0], ACTIONS))
        return ops.mask(q, legal), q

    found = jax.jit(make_rollout(ENV, act, EvaluationPlan(3, 0.0, 0.9)))((), (), jax.random.key(0))
    gaps = [1, 9, 90, 100, 1, 9]
    np.testing.assert_allclose(np.asarray(found["action_gap"]), np.mean(gaps), rtol=1e-6)


def test_gymnasium_masks_are_recorded_and_obeyed() -> None:
    env = envs.load("gymnasium:Taxi-v4")
    assert not isinstance(env, Env)
    group = list(on_host(env, UniformActor(), 2, 1.0, seed=0))
    data = Dataset.from_episodes(group, env.actions)
    assert data.legal is not None
    assert data.legal.shape == (len(data.action), 6)
    assert not data.legal.all()
    taken = data.action >= 0
    counts = data.legal[taken].sum(axis=1)
    np.testing.assert_allclose(data.propensity[taken], 1 / counts, rtol=1e-6)  # type: ignore[index]

    class Stubborn:
        """Wants the action that is legal least often."""

        stack = 1

        def begin(self, lane: int) -> None:
            pass

        def decide(self, obs: Any, legal: Any, waiting: Any) -> Decision:
            asked.extend(legal[lane] for lane in waiting)
            return Decision(np.argmax(np.where(legal, [0, 1, 2, 3, 4, 5], -1), axis=1))

    asked: list[np.ndarray] = []
    traces = list(play(VectorEnv([env]), Stubborn(), 1, 0.0, 0))
    assert len(asked) == len(traces[0].reward)
    masks = np.asarray(asked)
    assert (masks.sum(axis=1) < 6).any()
    assert traces[0].action == [int(np.flatnonzero(mask)[-1]) for mask in masks]
