"""Every algorithm on a decision process small enough to solve, through the compiled loop.

Four states, three actions; each action leads to one of two outcomes with equal chance, and the
behaviour's probabilities are eighths. So a log that holds every trajectory as often as it is likely
has exactly the frequencies of the process, and what an algorithm should learn follows from the
tables below, or from counting the log, in float64.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import algorithms
from rbve.data import Dataset, Episode
from rbve.networks.heads import Quantile
from rbve.training.spec import Spec, resolve
from rbve.training.table import pack
from rbve.training.update import Member, make_program, member_keys



STATES, ACTIONS, END = 4, 3, 4
GAMMA = 0.6
BEHAVIOUR = np.array([[5, 2, 1], [1, 5, 2], [2, 1, 5], [1, 2, 5]]) / 8
REWARD = np.array(  # by state, action, outcome
    [
        [[-0.25, -0.5], [1.25, 1.25], [-0.5, 0.75]],
        [[0.75, 1.25], [0, 0.25], [-1, -0.75]],
        [[-0.75, 0], [-0.75, 0.25], [1.25, 1.25]],
        [[-1, 1.25], [1.5, 1.75], [-0.25, -0.75]],
    ]
)
# Returns to every state; episodes are cut off after two steps.
LOOP = np.array(
    [
        [[1, 2], [3, 0], [END, 2]],
        [[2, 2], [0, END], [3, 1]],
        [[3, END], [1, 0], [2, 3]],
        [[0, END], [2, 1], [3, 0]],
    ]
)
CERTAIN = np.repeat(LOOP[:, :, :1], 2, axis=2)  # the first outcome always
# Ends after three steps at the latest.
LAYERS = np.array(
    [
        [[1, 2], [2, 1], [1, END]],
        [[3, 3], [3, END], [END, 3]],
        [[3, END], [3, 3], [END, 3]],
        [[END, END], [END, END], [END, END]],
    ]
)
LIKELY = BEHAVIOUR / BEHAVIOUR.max(axis=1, keepdims=True) > 0.3  # what BCQ allows


class Decision(NamedTuple):
    state: int
    action: int
    reward: float
    next_state: int  # END = terminated


def trajectories(
    following: np.ndarray, rewards: np.ndarray, start: int, steps: int
) -> Iterator[tuple[list[Decision], int]]:
    """Every course of at most `steps` decisions, and how often it is logged: 16^steps in all."""
    if steps == 0 or start == END:
        yield [], 16**steps
        return
    for action, outcome in itertools.product(range(ACTIONS), range(2)):
        often = int(8 * BEHAVIOUR[start, action])
        first = Decision(
            start, action, rewards[start, action, outcome], following[start, action, outcome]
        )
        for rest, count in trajectories(following, rewards, first.next_state, steps - 1):
            yield [first, *rest], often * count


class Log(NamedTuple):
    courses: list[list[Decision]]

    def dataset(self) -> Dataset:
        return Dataset.from_episodes(map(as_episode, self.courses), ACTIONS)

    def mean_by_pair(self, value: Callable[[list[Decision], int], float]) -> np.ndarray:
        """Mean over all decisions of each state and action; `value` sees a course and a step."""
        total, count = np.zeros((2, STATES, ACTIONS))
        for course in self.courses:
            for step, (state, action, _, _) in enumerate(course):
                total[state, action] += value(course, step)
                count[state, action] += 1
        return total / count


def as_episode(course: list[Decision]) -> Episode:
    # The observation after the end is that of state 3, which nobody may take for a next state.
    last = course[-1].next_state
    visited = [decision.state for decision in course] + [3 if last == END else last]
    return Episode.from_steps(
        np.eye(STATES, dtype=np.float32)[visited],
        [decision.action for decision in course],
        [decision.reward for decision in course],
        terminated=last == END,
    )


@functools.cache
def log(process: str) -> Log:
    following, rewards, starts, steps = {
        "loop": (LOOP, REWARD, range(STATES), 2),
        "certain": (CERTAIN, REWARD[:, :, [0, 0]], range(STATES), 2),
        "layers": (LAYERS, REWARD, [0], 3),
    }[process]
    return Log(
        [
            course
            for start in starts
            for course, count in trajectories(following, rewards, start, steps)
            for _ in range(count)
        ]
    )


def reward_to_go(course: list[Decision], step: int) -> float:
    return sum(GAMMA**k * decision.reward for k, decision in enumerate(course[step:]))


def solve(
    following: np.ndarray, rewards: np.ndarray, value: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Q = E[r + γ value(Q)(s')] by iteration."""
    q = np.zeros((STATES, ACTIONS))
    for _ in range(200):
        q = (rewards + GAMMA * np.append(value(q), 0)[following]).mean(axis=-1)
    return q


def behaviour_value(q: np.ndarray) -> np.ndarray:
    return np.sum(BEHAVIOUR * q, axis=1)


def best_value(q: np.ndarray) -> np.ndarray:
    return q.max(axis=1)


def best_likely_value(q: np.ndarray) -> np.ndarray:
    return np.where(LIKELY, q, -np.inf).max(axis=1)


def descend(gradient: Callable[[np.ndarray], np.ndarray], rate: float = 0.5) -> np.ndarray:
    """Where the gradient vanishes, from zero."""
    table = np.zeros((STATES, ACTIONS))
    for _ in range(20_000):
        slope = gradient(table)
        if np.abs(slope).max() < 1e-10:
            return table
        table = table - rate * slope
    raise AssertionError("no minimum found")


def frequencies(courses: list[list[Decision]]) -> np.ndarray:
    """Share of all decisions by state and action."""
    count = np.zeros((STATES, ACTIONS))
    for decision in itertools.chain(*courses):
        count[decision.state, decision.action] += 1
    return count / count.sum()


class Learnt(NamedTuple):
    q: np.ndarray  # (S, A)
    logits: np.ndarray | None
    network: Any


@functools.cache
def learn(name: str, process: str = "loop", scale: float = 1.0, **settings: Any) -> Learnt:
    """Train with a falling learning rate, then ask the network about every state."""
    spec = Spec(algorithm=name, hidden=(32,), batch_size=256, gamma=GAMMA)
    spec, numbers = resolve(spec, settings)
    algorithm = spec.load_algorithm()
    table = pack([algorithm.keep(log(process).dataset())], spec.view, algorithm.bootstrap)
    program = make_program(spec, table.layout)
    weights, updates, _ = member_keys(0)
    state, rows = program.init(weights), jnp.asarray(table.rows)
    advance = jax.jit(program.advance)
    for learning_rate, until in ((1e-2, 1500), (1e-3, 3000), (1e-4, 4000)):
        member = Member(
            key=updates,
            offset=jnp.int32(table.offset[0]),
            size=jnp.int32(table.count[0]),
            g_scale=jnp.float32(table.g_scale[0]),
            learning_rate=jnp.float32(learning_rate),
            target_period=jnp.int32(20),
            config=jax.tree.map(jnp.float32, algorithm.config(**numbers)),
        )
        state, _ = advance(state, rows, member, int(scale * until))
    assert int(state.diverged_at) == -1
    network = program.unravel(state.params)
    said = network(jnp.eye(STATES), jax.random.key(1))
    logits = None if said.logits is None else np.asarray(said.logits)
    return Learnt(np.asarray(said.q), logits, network)


def softmax(logits: np.ndarray) -> np.ndarray:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def assert_close(got: np.ndarray, expected: np.ndarray, within: float = 0.02) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=within)


Q_BEHAVIOUR = solve(LOOP, REWARD, behaviour_value)
Q_BEST = solve(LOOP, REWARD, best_value)
