"""Vectorised episodes: each has its own seeds, and how many run at once changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import algorithms, envs
from rbve.evaluation.actors import PolicyActor, UniformActor
from rbve.evaluation.evaluate import UNTRAINED, Evaluator
from rbve.evaluation.fit import Interface, check_fit, frames_in
from rbve.evaluation.rollout import EvaluationPlan
from rbve.evaluation.vector import (
    WIDTH,
    Decision,
    FrameStack,
    Outcome,
    VectorEnv,
    open_vector,
    play,
)
from rbve.networks import build
from rbve.policy import Policy
from rbve.training.batches.transitions import TransitionItems


class Counter:
    """Shows the step; ends after a number of steps that its seed tells; rewards 1, 2, 3, ..."""

    name, obs_shape, actions, executed, legal = "counter", (2, 2, 1), ("a", "b", "c"), -1, None

    def reset(self, seed: int | None = None) -> np.ndarray:
        assert seed is not None
        self.seed, self.time, self.length = seed, 0, 3 + seed % 7
        return self.observe()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        self.time += 1
        self.executed = action
        over = self.time == self.length
        return (
            self.observe(),
            float(self.time),
            over and self.seed % 2 == 0,
            over and self.seed % 2 == 1,
        )

    def observe(self) -> np.ndarray:
        return np.full((2, 2, 1), self.time + 1, np.uint8)

    def close(self) -> None:
        pass


class Watcher:
    """Remembers what it is shown; takes the number of the lane's step modulo 3."""

    def __init__(self, stack: int) -> None:
        self.stack = stack
        self.shown: list[tuple[int, list[int]]] = []

    def begin(self, lane: int) -> None:
        pass

    def decide(self, obs: np.ndarray, legal: Any, waiting: Mapping[int, Outcome]) -> Decision:
        for lane in waiting:
            self.shown.append((lane, obs[lane, 0, 0].tolist()))
        newest = obs[:, 0, 0, -1].astype(int)
        q = np.stack([newest, newest + 2.5, -newest], axis=1).astype(float)
        return Decision((newest - 1) % 3, q)


def test_frames_are_stacked_with_zeros_at_the_start_and_newest_last() -> None:
    player = Watcher(stack=4)
    traces = list(play(VectorEnv([Counter()]), player, 2, 0.0, seed=0))  # type: ignore[list-item]
    expected = []
    for trace in traces:
        for step in range(len(trace.reward)):
            seen = [0, 0, 0, *range(1, step + 2)][-4:]
            expected.append((0, seen))
    assert player.shown == expected


def test_frames_are_stacked_as_training_does() -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(256, size=(4, 5, 3, 2), dtype=np.uint8)
    stacked = FrameStack(2, (5, 3, 2), 4)
    for k, frame in enumerate(frames):
        stacked.put(1, frame, begins=k == 0)
    items = TransitionItems((5, 3, 2), 4, 3, False, True)
    expected = items.join(jnp.asarray(frames[None]))
    np.testing.assert_array_equal(stacked.joined()[1], expected[0])
    stacked.put(1, frames[3], begins=True)
    np.testing.assert_array_equal(stacked.joined()[1][..., :6], 0)


def test_what_a_trace_holds() -> None:
    (trace,) = play(VectorEnv([Counter()]), Watcher(1), 1, 0.0, seed=3, keep_obs=True)  # type: ignore[list-item]
    length = len(trace.reward)
    assert trace.reward == [float(k) for k in range(1, length + 1)]
    assert trace.action == trace.executed == [k % 3 for k in range(length)]
    assert [int(obs[0, 0, 0]) for obs in trace.obs] == list(range(1, length + 2))
    # Values of step k + 1: k + 1, k + 3.5, -(k + 1); the gap between the best two is 2.5.
    values = [(n, n + 2.5, -n)[(n - 1) % 3] for n in range(1, length + 1)]
    assert trace.q == values
    assert trace.gap == [2.5] * length
    assert trace.propensity == [1.0] * length


@pytest.mark.parametrize("count", [2, 3, WIDTH])
def test_the_number_of_environments_changes_nothing(count: int) -> None:
    def run(width: int) -> list[tuple[Any, ...]]:
        env = VectorEnv([Counter() for _ in range(width)])  # type: ignore[misc]
        found = play(env, Watcher(2), 20, 0.4, seed=5)
        return [(t.number, t.action, t.reward, t.terminated, t.q, t.propensity) for t in found]

    alone = run(1)
    assert [each[0] for each in alone] == list(range(20))
    assert len({len(each[1]) for each in alone}) > 3
    assert {each[3] for each in alone} == {True, False}
    assert run(count) == alone


def test_random_actions_are_as_frequent_as_asked_and_seeds_differ() -> None:
    env = VectorEnv([Counter() for _ in range(WIDTH)])  # type: ignore[misc]
    traces = list(play(env, Watcher(1), 400, 0.3, seed=1))
    actions = np.concatenate([trace.action for trace in traces])
    best = np.concatenate([np.arange(len(trace.action)) % 3 for trace in traces])
    share = 0.3 * 2 / 3
    deviation = np.sqrt(share * (1 - share) / len(actions))
    assert np.mean(actions != best) == pytest.approx(share, abs=4 * deviation)
    other = list(play(env, Watcher(1), 400, 0.3, seed=2))
    assert [t.action for t in traces] != [t.action for t in other]
    assert len({tuple(trace.action) for trace in traces[:40]}) > 20
    salted = list(play(env, Watcher(1), 400, 0.3, seed=1, salt=UNTRAINED))
    assert [t.action for t in traces] != [t.action for t in salted]


def policy_for(name: str, stack: int = 1, seed: int = 0) -> Policy:
    env = envs.load(name)
    *outer, last = env.obs_shape
    shape = (*outer, last * stack)
    algorithm = algorithms.load("bve")
    options, config = algorithm.options(), algorithm.config()
    network = build(shape, len(env.actions), "q", options, (16,), jax.random.key(seed), "mlp")
    info = {"job": {"network": {"stack": stack}}}
    return Policy(algorithm, options, config, network, shape, env.actions, (16,), info, torso="mlp")


@pytest.mark.parametrize(
    ("name", "stack"), [("gymnasium:CartPole-v1", 2), ("atari:Pong,max_steps=12", 4)]
)
def test_evaluation_is_the_same_in_one_environment_and_in_three(name: str, stack: int) -> None:
    if name.startswith("atari"):
        pytest.importorskip("ale_py", reason='needs pip install "rbve[atari]"')
    policy = policy_for(name, stack)
    plan = EvaluationPlan(5, 0.2, 0.9, clip_rewards=True)
    found = {}
    for count in (1, 3):
        env = open_vector(name, count=count)
        found[count] = Evaluator(env, plan).play(policy, seed=11, step=3).per_episode
        env.close()
    assert found[1].keys() == found[3].keys()
    for metric in found[1]:
        np.testing.assert_array_equal(found[1][metric], found[3][metric], err_msg=metric)
    assert len(set(map(float, found[1]["value_error"]))) == 5  # episodes differ


def test_gymnasium_episodes_follow_their_seeds() -> None:
    env = open_vector("gymnasium:CartPole-v1", count=2)

    def starts(seed: int, episodes: int) -> list[list[float]]:
        traces = play(env, UniformActor(), episodes, 1.0, seed, keep_obs=True)
        return [trace.obs[0].tolist() for trace in traces]

    assert starts(0, 5) == starts(0, 8)[:5]
    assert len({tuple(start) for start in starts(0, 8) + starts(1, 8)}) == 16


def test_value_figures_from_traces() -> None:
    """Against sums by hand, for episodes of different lengths."""
    policy = policy_for("gymnasium:CartPole-v1")
    env = open_vector("gymnasium:CartPole-v1", count=3)
    found = Evaluator(env, EvaluationPlan(4, 0.5, 0.8)).play(policy, seed=0, step=2).per_episode
    traces = list(play(env, PolicyActor(policy), 4, 0.5, 2, keep_obs=True))
    for k, trace in enumerate(traces):
        q = policy.q_values(np.asarray(trace.obs[:-1]))
        g = [sum(0.8**j for j in range(len(trace.reward) - t)) for t in range(len(trace.reward))]
        error = q[np.arange(len(g)), trace.action] - g
        assert float(found["return"][k]) == len(g)
        np.testing.assert_allclose(found["value_error"][k], error.mean(), rtol=1e-4)
        expected = (np.maximum(error, 0) ** 2).mean()
        np.testing.assert_allclose(found["overestimation"][k], expected, rtol=1e-3, atol=1e-6)
        ordered = np.sort(q, axis=1)
        gap = (ordered[:, -1] - ordered[:, -2]).mean()
        np.testing.assert_allclose(found["action_gap"][k], gap, rtol=1e-4)


@pytest.mark.parametrize(
    ("shape", "wanted", "stack", "expected"),
    [
        ((84, 84, 1), (84, 84, 4), 4, 4),
        ((84, 84, 1), (84, 84, 4), 1, 4),  # joined in the data: the channels tell
        ((4,), (4,), 1, 1),
        ((4,), (8,), 2, 2),
        ((4,), (8,), 1, None),
        ((84, 84, 1), (84, 80, 4), 4, None),
        ((84, 84, 3), (84, 84, 4), 1, None),
    ],
)
def test_how_many_frames_a_policy_joins(
    shape: tuple[int, ...], wanted: tuple[int, ...], stack: int, expected: int | None
) -> None:
    assert frames_in(shape, wanted, stack) == expected


def test_a_policy_that_does_not_fit() -> None:
    env = envs.load("gymnasium:CartPole-v1")
    with pytest.raises(ValueError, match=r"observations \(4,\) and 2 actions; the policy takes"):
        check_fit(env, Interface.of_policy(policy_for("catch")))
    inside = envs.load("catch")
    with pytest.raises(ValueError, match="train with --stack 1"):
        check_fit(inside, Interface.of_policy(policy_for("catch", stack=3)))
