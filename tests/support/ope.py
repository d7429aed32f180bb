"""Random decision processes small enough to solve, and logs drawn from them, as off-policy
evaluation reads them: exact values by a linear system, propensities, masks, ends and cuts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rbve.data.dataset import Dataset
from rbve.off_policy.behaviour import BehaviourPolicy, Calibration
from rbve.off_policy.case import OpeCase
from rbve.off_policy.log import DecisionLog

STATES, ACTIONS = 4, 3


@dataclass(frozen=True)
class Process:
    """By state and action; what a row of `following` lacks to 1 is the chance that it ends."""

    legal: np.ndarray  # (S, A) bool
    reward: np.ndarray  # (S, A) mean reward
    noise: float  # deviation of rewards
    following: np.ndarray  # (S, A, S) P(s' | s, a)
    start: np.ndarray  # (S,)
    behaviour: np.ndarray  # (S, A)
    policy: np.ndarray  # (S, A)
    gamma: float
    limit: int  # decisions after which an episode is cut

    @cached_property
    def q(self) -> np.ndarray:
        """(S, A) of the policy, by a linear system."""
        return self.q_of(self.policy)

    def q_of(self, policy: np.ndarray) -> np.ndarray:
        states, actions = self.reward.shape
        onward = self.following.reshape(-1, states) @ np.kron(np.eye(states), np.ones((1, actions)))
        onward = onward * policy.reshape(-1)  # from pair to pair
        system = np.eye(states * actions) - self.gamma * onward
        return np.linalg.solve(system, self.reward.reshape(-1)).reshape(states, actions)

    @property
    def v(self) -> np.ndarray:
        return (self.policy * self.q).sum(axis=1)

    @property
    def value(self) -> float:
        """Of the policy, from the start on."""
        return float(self.start @ self.v)


def process(
    seed: int = 0,
    gamma: float = 0.9,
    ends: float = 0.5,
    limit: int = 200,
    greedy: bool = False,
    noise: float = 0.3,
) -> Process:
    """With masks; actions differ in how likely they end the episode, so that its length tells
    something of what was done."""
    rng = np.random.default_rng(seed)
    legal = np.ones((STATES, ACTIONS), bool)
    legal[np.arange(STATES), rng.integers(0, ACTIONS, STATES)] = False
    legal[0] = True
    end = np.clip(ends * (0.5 + np.linspace(0, 1, ACTIONS)), 0, 1)  # by action
    following = rng.dirichlet(np.ones(STATES), (STATES, ACTIONS)) * (1 - end)[:, None]
    behaviour = np.where(legal, rng.uniform(0.3, 1.0, (STATES, ACTIONS)), 0.0)
    behaviour /= behaviour.sum(axis=1, keepdims=True)
    best = np.eye(ACTIONS)[np.where(legal, rng.random((STATES, ACTIONS)), 0.0).argmax(axis=1)]
    return Process(
        legal=legal,
        reward=rng.normal(0, 1, (STATES, ACTIONS)) + 1.0,
        noise=noise,
        following=following,
        start=rng.dirichlet(np.ones(STATES) * 3),
        behaviour=behaviour,
        policy=best if greedy else 0.5 * behaviour + 0.5 * best,
        gamma=gamma,
        limit=limit,
    )


def one_step(seed: int = 0) -> Process:
    made = process(seed)
    return replace(made, following=np.zeros_like(made.following))


def drawn(table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One column of each row, by the probabilities that it holds."""
    return (rng.random((len(table), 1)) > np.cumsum(table, axis=1)[:, :-1]).sum(axis=1)


def record(made: Process, episodes: int, seed: int = 0) -> Dataset:
    """Episodes of the behaviour, with propensities and masks; the state is seen as a unit vector.
    After a termination, the row of the final observation shows any state."""
    rng = np.random.default_rng([seed, 7])
    state = drawn(np.repeat(made.start[None], episodes, 0), rng)
    running = np.ones(episodes, bool)
    states, actions, rewards, alive = [state], [], [], []
    while running.any() and len(actions) < made.limit:
        action = drawn(made.behaviour[state], rng)
        reward = made.reward[state, action] + made.noise * rng.normal(size=episodes)
        onward = made.following[state, action]
        later = drawn(np.column_stack([onward, 1 - onward.sum(axis=1)]), rng)
        alive.append(running.copy())
        running &= later < len(made.start)
        state = np.minimum(later, len(made.start) - 1)
        states.append(state)
        actions.append(action)
        rewards.append(reward)
    lengths = np.sum(alive, axis=0)
    offsets = np.concatenate([[0], np.cumsum(lengths + 1)])
    episode = np.repeat(np.arange(episodes), lengths + 1)
    step = np.arange(offsets[-1]) - offsets[episode]
    final = step == lengths[episode]
    seen = np.array(states)[step, episode]
    decision = np.minimum(step, len(actions) - 1)
    action = np.where(final, -1, np.array(actions)[decision, episode]).astype(np.int32)
    reward = np.where(final, 0.0, np.array(rewards)[decision, episode]).astype(np.float32)
    taken = np.where(final, 1.0, made.behaviour[seen, action])
    return Dataset(
        obs=np.eye(len(made.start), dtype=np.float32)[seen],
        action=action,
        reward=reward,
        offsets=offsets,
        terminated=~running,
        complete=np.ones(episodes, bool),
        episode_return=np.add.reduceat(reward.astype(np.float64), offsets[:-1]),
        actions=tuple(f"action {index}" for index in range(made.reward.shape[1])),
        legal=made.legal[seen],
        propensity=taken.astype(np.float32),
    )


def state_of(dataset: Dataset) -> np.ndarray:
    """(R,)"""
    return np.asarray(dataset.obs).argmax(axis=1)


def case_of(
    made: Process, dataset: Dataset, q: np.ndarray | None = None, v: np.ndarray | None = None
) -> OpeCase:
    """The process' policy with its exact values, or others by state, and true propensities."""
    log = DecisionLog.of(dataset, made.gamma)
    state = state_of(log.dataset)
    fitted = made.q if q is None else q
    cut = (made.v if v is None else v)[state[log.final_rows]]
    return OpeCase(
        log,
        made.policy[state[log.rows]],
        made.behaviour[state[log.rows], log.action],
        fitted[state[log.rows]],
        cut,
    )


def behaviour_on(case: OpeCase, made: Process, error: float = 0.0) -> BehaviourPolicy:
    """True propensities, as if estimated with a calibration error."""
    every = made.behaviour[state_of(case.log.dataset)[case.log.rows]]
    return BehaviourPolicy(
        "estimated", case.behaviour, every, Calibration(1.0, 1.0, error, 1.0, 1, 0.0, ())
    )


def standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) / len(values) ** 0.5
