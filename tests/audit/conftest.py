"""Logs to judge: recorded ones, and small worlds made here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.recordings import record_online

from rbve.data import Dataset, Episode, load
from rbve.data.features import Feature, Features

Reward = Callable[[np.ndarray, int, np.ndarray, np.random.Generator], float]
ACTIONS = ("hold", "buy", "sell")


def recorded(
    factory: pytest.TempPathFactory, env: str, episodes: int, noise: float, seed: int = 0
) -> Dataset:
    path = factory.mktemp("recorded") / env
    record_online(env, path, episodes, noise=noise, seed=seed)
    return load(path)


@pytest.fixture(scope="session")
def catch_log(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return recorded(tmp_path_factory, "catch", 2000, 0.0)


@pytest.fixture(scope="session")
def cartpole_log(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    # An agent that learns: one that does not leaves most states with one action alone.
    return recorded(tmp_path_factory, "cartpole", 100, 0.25, seed=2)


@pytest.fixture(scope="session")
def mountain_car_log(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return recorded(tmp_path_factory, "mountain_car", 100, 0.0)


def profit(state: np.ndarray, action: int, after: np.ndarray, rng: np.random.Generator) -> float:
    return float(state[0] * (action - 1) + 0.3 * rng.normal())


def walk(
    reward: Reward = profit, episodes: int = 150, end: float = 0.08, seed: int = 0, **more: Any
) -> Dataset:
    """Episodes of a noisy linear world that end by chance; half of the actions are random."""
    rng = np.random.default_rng(seed)
    push = rng.normal(size=(3, 4))
    held = []
    for _ in range(episodes):
        states, actions, rewards = [rng.normal(size=4)], [], []
        while not actions or rng.random() > end:
            state = states[-1]
            greedy = int(np.argmax(push @ state))
            actions.append(int(rng.integers(3)) if rng.random() < 0.5 else greedy)
            states.append(0.9 * state + 0.3 * push[actions[-1]] + 0.2 * rng.normal(size=4))
            rewards.append(reward(state, actions[-1], states[-1], rng))
        held.append(Episode.from_steps(np.array(states, np.float32), actions, rewards, True))
    return replace(Dataset.from_episodes(held, ACTIONS), **more)


@pytest.fixture(scope="session")
def world() -> Callable[..., Dataset]:
    return walk


@pytest.fixture(scope="session")
def walk_log() -> Dataset:
    return walk()


@pytest.fixture(scope="session")
def steady_log() -> Dataset:
    """A walk where every step costs the same, as in mountain car."""
    return walk(lambda state, action, after, rng: -1.0)


@pytest.fixture(scope="session")
def bandit_log() -> Dataset:
    """Clicks on one of four offers: one step each, named contexts, propensities."""
    rng = np.random.default_rng(1)
    rows = 4000
    context = np.stack([rng.normal(40, 12, rows), rng.integers(3, size=rows)], axis=1)
    liking = np.stack([np.full(rows, 0.2), context[:, 0] / 60, context[:, 1], -context[:, 1]], 1)
    chance = np.exp(liking) / np.exp(liking).sum(1, keepdims=True)
    action = np.array([rng.choice(4, p=p) for p in chance])
    click = rng.random(rows) < 1 / (1 + np.exp(1.5 - liking[np.arange(rows), action]))
    episodes = [
        Episode(
            obs=np.repeat(context[k : k + 1], 2, axis=0),
            action=np.array([action[k], -1]),
            reward=np.array([click[k], 0], np.float32),
            terminated=True,
            propensity=np.array([chance[k, action[k]], 1]),
            final_observed=False,
        )
        for k in range(rows)
    ]
    features = Features(
        (
            Feature("age", "number", 40.0, 12.0),
            Feature("device", "category", categories=("desktop", "phone", "tablet")),
        )
    )
    return Dataset.from_episodes(episodes, ("none", "mail", "call", "gift"), features=features)


@pytest.fixture(scope="session")
def masked_log() -> Dataset:
    """A walk where action 2 is legal only while the first number is positive."""
    rng = np.random.default_rng(2)
    held = []
    for _ in range(200):
        states = np.cumsum(rng.normal(size=(int(rng.integers(4, 14)) + 1, 3)), axis=0)
        legal = np.ones((len(states), 3), bool)
        legal[:, 2] = states[:, 0] > 0
        action = np.array([rng.choice(np.flatnonzero(row)) for row in legal])
        reward = (states[:, 1] * (action == 1) + (action == 2)).astype(np.float32)
        action[-1], reward[-1] = -1, 0
        held.append(Episode(states.astype(np.float32), action, reward, True, legal=legal))
    return Dataset.from_episodes(held, 3)


def moved(dataset: Dataset, rows: int) -> Dataset:
    """Rewards `rows` later within their episodes (negative: earlier); what falls out is lost."""
    reward = np.zeros_like(np.asarray(dataset.reward))
    for start, stop in zip(dataset.offsets[:-1], dataset.offsets[1:] - 1, strict=True):
        old = dataset.reward[start:stop]
        if rows > 0:
            reward[start + rows : stop] = old[:-rows]
        else:
            reward[start : stop + rows] = old[-rows:]
    returns = np.add.reduceat(reward.astype(np.float64), dataset.offsets[:-1])
    return replace(dataset, reward=reward, episode_return=returns)


@pytest.fixture(scope="session")
def shifted() -> Callable[[Dataset, int], Dataset]:
    return moved
