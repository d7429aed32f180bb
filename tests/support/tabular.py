"""A decision process small enough to solve, a log with exactly its frequencies, and what is learnt.

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

from rbve.data import Dataset, Episode
from rbve.spec import Spec
from rbve.training.batches.table import transition_table
from rbve.training.update import Member, make_program, member_keys
from rbve.types import Head

STATES, ACTIONS, END = 4, 3, 4
GAMMA = 0.6
TOLERANCE = 0.04  # what is left of sampling noise at the last learning rate
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


class Row(NamedTuple):
    """What trains: a decision, the action logged after it and its reward-to-go."""

    state: int
    action: int
    reward: float
    next_state: int
    next_action: int | None
    g: float


class Log(NamedTuple):
    courses: list[list[Decision]]

    def dataset(self) -> Dataset:
        return Dataset.from_episodes(map(as_episode, self.courses), ACTIONS)

    def rows(self) -> list[Row]:
        rows = []
        for course in self.courses:
            for step, decision in enumerate(course):
                follower = course[step + 1].action if step + 1 < len(course) else None
                g = sum(GAMMA**k * later.reward for k, later in enumerate(course[step:]))
                rows.append(Row(*decision, follower, g))
        return rows

    def pairs(self) -> list[Row]:
        """Without decisions whose next action the log does not hold."""
        return [row for row in self.rows() if row.next_state == END or row.next_action is not None]


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


def descend(
    gradient: Callable[[np.ndarray], np.ndarray],
    rate: float = 0.5,
    shape: tuple[int, ...] = (STATES, ACTIONS),
) -> np.ndarray:
    """Where the gradient vanishes, from zero."""
    table = np.zeros(shape)
    for _ in range(20_000):
        slope = gradient(table)
        if np.abs(slope).max() < 1e-10:
            return table
        table = table - rate * slope
    raise AssertionError("no minimum found")


def sums(rows: list[Row], value: Callable[[Row], float]) -> np.ndarray:
    """Σ value over the rows of each state and action, by the number of all rows."""
    total = np.zeros((STATES, ACTIONS))
    for row in rows:
        total[row.state, row.action] += value(row)
    return total / len(rows)


def frequencies(rows: list[Row]) -> np.ndarray:
    return sums(rows, lambda row: 1.0)


def policy_of(rows: list[Row]) -> np.ndarray:
    share = frequencies(rows)
    return share / share.sum(axis=1, keepdims=True)


def logged_backup(rows: list[Row], q: np.ndarray) -> np.ndarray:
    """Mean of r + γ Q(s', a') by pair; nothing follows where the log holds no next action."""

    def goal(row: Row) -> float:
        follows = row.next_action is not None
        return row.reward + (GAMMA * q[row.next_state, row.next_action] if follows else 0.0)

    return sums(rows, goal) / frequencies(rows)


class Learnt(NamedTuple):
    q: np.ndarray  # (S, A)
    logits: np.ndarray | None
    network: Any
    head: Head  # what the network says of every state


@functools.cache
def learn(name: str, process: str = "loop", batch_size: int = 256, **settings: Any) -> Learnt:
    """Train with a falling learning rate, then ask the network about every state."""
    own = {"hidden": (32,), "batch_size": batch_size, "gamma": GAMMA, **settings}
    spec = Spec.of(algorithm=name, **own).resolved()
    algorithm = spec.load_algorithm()
    table = transition_table(
        [algorithm.keep(log(process).dataset())], spec.view, algorithm.bootstrap
    )
    program = make_program(spec, table.items)
    weights, updates, _ = member_keys(0)
    state, rows = program.init(weights), jax.tree.map(jnp.asarray, table.store)
    advance = jax.jit(program.advance)
    for learning_rate, until in ((1e-2, 1000), (1e-3, 3000), (1e-4, 6000)):
        member = Member(
            key=updates,
            offset=jnp.int32(table.offset[0]),
            size=jnp.int32(table.count[0]),
            g_scale=jnp.float32(table.g_scale[0]),
            learning_rate=jnp.float32(learning_rate),
            target_period=jnp.int32(20),
            config=jax.tree.map(jnp.float32, spec.load_config()),
        )
        state, _ = advance(state, rows, member, until)
    assert int(state.diverged_at) == -1
    network = program.unravel(state.params)
    said = network(jnp.eye(STATES), jax.random.key(1))
    logits = None if said.logits is None else np.asarray(said.logits)
    return Learnt(np.asarray(said.q), logits, network, said)


def softmax(logits: np.ndarray) -> np.ndarray:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def assert_close(got: np.ndarray, expected: np.ndarray, within: float = TOLERANCE) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=within)


def assert_apart(one: np.ndarray, two: np.ndarray) -> None:
    """The test could tell these truths from each other."""
    assert np.abs(one - two).max() > 5 * TOLERANCE
