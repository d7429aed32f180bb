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
from rbve.networks.heads.quantile import Quantile
from rbve.spec import Spec
from rbve.training.batches.table import transition_table
from rbve.training.update import Member, make_program, member_keys

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


def descend(gradient: Callable[[np.ndarray], np.ndarray], rate: float = 0.5) -> np.ndarray:
    """Where the gradient vanishes, from zero."""
    table = np.zeros((STATES, ACTIONS))
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
    return Learnt(np.asarray(said.q), logits, network)


def softmax(logits: np.ndarray) -> np.ndarray:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def assert_close(got: np.ndarray, expected: np.ndarray, within: float = TOLERANCE) -> None:
    np.testing.assert_allclose(got, expected, rtol=0, atol=within)


def assert_apart(one: np.ndarray, two: np.ndarray) -> None:
    """The test could tell these truths from each other."""
    assert np.abs(one - two).max() > 5 * TOLERANCE


def q_of_behaviour() -> np.ndarray:
    return solve(LAYERS, REWARD, behaviour_value)


def q_best() -> np.ndarray:
    return solve(LOOP, REWARD, best_value)


@functools.cache
def q_logged() -> np.ndarray:
    """The fixed point of the logged backup."""
    rows, q = log("loop").pairs(), np.zeros((STATES, ACTIONS))
    for _ in range(50):
        q = logged_backup(rows, q)
    return q


def test_the_log_has_the_frequencies_of_the_process() -> None:
    rows = log("loop").rows()
    np.testing.assert_allclose(policy_of(rows), BEHAVIOUR)
    reward = sums(rows, lambda row: row.reward) / frequencies(rows)
    np.testing.assert_allclose(reward, REWARD.mean(axis=-1))
    ended = sums(rows, lambda row: row.next_state == END) / frequencies(rows)
    np.testing.assert_allclose(ended, (LOOP == END).mean(axis=-1))


def test_bve_reaches_the_value_of_the_behaviour() -> None:
    truth = q_of_behaviour()
    assert_apart(truth, solve(LAYERS, REWARD, best_value))
    assert_close(learn("bve", "layers").q, truth)


def test_mc_reaches_the_value_of_the_behaviour() -> None:
    assert_close(learn("mc", "layers").q, q_of_behaviour())


def test_mc_regresses_to_the_logged_returns() -> None:
    rows = log("loop").rows()
    truth = sums(rows, lambda row: row.g) / frequencies(rows)
    assert_apart(truth, q_logged())
    assert_close(learn("mc").q, truth)


def test_bve_drops_what_a_cut_leaves_without_a_next_action() -> None:
    rows, as_ends = log("loop").rows(), np.zeros((STATES, ACTIONS))
    for _ in range(50):
        as_ends = logged_backup(rows, as_ends)
    assert_apart(q_logged(), as_ends)
    assert_apart(q_logged(), q_best())
    assert_close(learn("bve").q, q_logged())


def test_rbve_without_strength_is_bve() -> None:
    assert_close(learn("rbve", lam=0.0).q, q_logged())
    assert_close(learn("rbve", lam=0.0).q, learn("bve").q, within=1e-3)


@pytest.mark.parametrize(("name", "settings"), [("dqn", {}), ("rem", {"heads": 10})])
def test_reaches_the_optimal_value(name: str, settings: dict[str, Any]) -> None:
    assert_close(learn(name, **settings).q, q_best())


def test_single_dqn_reaches_the_optimal_value() -> None:
    assert_close(learn("dqn", double="false").q, q_best())


def test_iqn_reaches_the_optimal_value() -> None:
    # Where outcomes are certain every quantile is the value itself.
    truth = solve(CERTAIN, REWARD[:, :, [0, 0]], best_value)
    learnt = learn("iqn", "certain", batch_size=32, samples=8, act_samples=8, cosines=16)
    assert_close(learnt.q, truth, within=2 * TOLERANCE)


def test_iqn_learns_quantiles() -> None:
    # In state 3 of the layers, which ends, action 0 pays −1 or 1.25 with equal chance.
    network = learn(
        "iqn", "layers", batch_size=32, samples=8, act_samples=8, cosines=16, kappa=0.1
    ).network
    assert isinstance(network.head, Quantile)
    levels = jnp.array([0.1, 0.25, 0.75, 0.9])
    features = network.torso(jnp.eye(STATES)[:, 3:])
    learnt = network.head.at(features, levels[:, None])[0, :, 0]
    assert_close(np.asarray(learnt), np.array([-1, -1, 1.25, 1.25]), within=0.15)


def optimal_goal(q: np.ndarray) -> np.ndarray:
    return (REWARD + GAMMA * np.append(q.max(axis=1), 0)[LOOP]).mean(axis=-1)


def test_cql_reaches_its_minimum() -> None:
    alpha, share = 0.3, frequencies(log("loop").rows())

    def gradient(q: np.ndarray) -> np.ndarray:
        visits = share.sum(axis=1, keepdims=True)
        return 2 * share * (q - optimal_goal(q)) + alpha * (visits * softmax(q) - share)

    truth = descend(gradient)
    assert_apart(truth, q_best())
    assert_close(learn("cql", alpha=alpha).q, truth)


def ranking_gradient(q: np.ndarray, strength: np.ndarray, nu: float) -> np.ndarray:
    """Slope of Σ_{s,a} strength · Σ_{i≠a} max(Q(s, i) − Q(s, a) + ν, 0)²."""
    slope = np.zeros((STATES, ACTIONS))
    for state, action, other in itertools.product(range(STATES), range(ACTIONS), range(ACTIONS)):
        if other != action:
            lead = max(q[state, other] - q[state, action] + nu, 0.0)
            slope[state, other] += 2 * strength[state, action] * lead
            slope[state, action] -= 2 * strength[state, action] * lead
    return slope


def weight_sums(rows: list[Row], beta: float, cap: float) -> np.ndarray:
    g = np.array([row.g for row in rows])
    mean, deviation = g.mean(), g.std()
    return sums(rows, lambda row: min(np.exp((row.g - mean) / deviation / beta), cap))


def test_rdqn_reaches_its_minimum() -> None:
    lam, nu, rows = 0.1, 0.5, log("loop").rows()
    share, strength = frequencies(rows), lam * weight_sums(rows, beta=0.5, cap=20.0)

    def gradient(q: np.ndarray) -> np.ndarray:
        return 2 * share * (q - optimal_goal(q)) + ranking_gradient(q, strength, nu)

    truth = descend(gradient)
    assert_apart(truth, q_best())
    assert_close(learn("rdqn", lam=lam, nu=nu).q, truth)


def test_rbve_reaches_its_minimum() -> None:
    lam, nu, rows = 0.1, 0.5, log("loop").pairs()
    share, strength = frequencies(rows), lam * weight_sums(rows, beta=0.5, cap=5.0)
    # The logged backup is linear in Q: one column per entry spares the loops over rows.
    offset = logged_backup(rows, np.zeros((STATES, ACTIONS)))
    basis = np.eye(STATES * ACTIONS).reshape(-1, STATES, ACTIONS)
    linear = np.stack([(logged_backup(rows, unit) - offset).ravel() for unit in basis], axis=1)

    def gradient(q: np.ndarray) -> np.ndarray:
        goal = offset + (linear @ q.ravel()).reshape(STATES, ACTIONS)
        return 2 * share * (q - goal) + ranking_gradient(q, strength, nu)

    truth = descend(gradient)
    assert_apart(truth, q_logged())
    assert_close(learn("rbve", lam=lam, nu=nu, cap=5.0).q, truth)


def test_bcq_reaches_the_optimal_value_among_likely_actions() -> None:
    truth = solve(LOOP, REWARD, best_likely_value)
    assert_apart(truth, q_best())
    assert_close(learn("bcq").q, truth)


def test_bcq_policy_reaches_its_minimum() -> None:
    penalty, share = 0.3, frequencies(log("loop").rows())
    visits = share.sum(axis=1, keepdims=True)

    def gradient(logits: np.ndarray) -> np.ndarray:
        return visits * (softmax(logits) + 2 * penalty * logits / ACTIONS) - share

    learnt = learn("bcq", logit_penalty=penalty).logits
    assert learnt is not None
    assert_close(learnt, descend(gradient))


def test_bc_reaches_the_behaviour() -> None:
    learnt = learn("bc").logits
    assert learnt is not None
    assert_close(softmax(learnt), BEHAVIOUR, within=TOLERANCE / 2)


def test_filtered_bc_reaches_the_behaviour_of_the_better_episodes() -> None:
    courses = log("loop").courses
    returns = [sum(decision.reward for decision in course) for course in courses]
    better = [c for c, r in zip(courses, returns, strict=True) if r > np.mean(returns)]
    truth = policy_of(Log(better).rows())
    assert_apart(truth, BEHAVIOUR)
    learnt = learn("filtered_bc").logits
    assert learnt is not None
    assert_close(softmax(learnt), truth, within=TOLERANCE / 2)


def test_every_algorithm_is_here() -> None:
    solved = {"bve", "mc", "rbve", "dqn", "rem", "iqn", "cql", "rdqn", "bcq", "bc", "filtered_bc"}
    assert solved == set(algorithms.names())
