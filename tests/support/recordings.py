"""Recordings by one call each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rbve.behaviours.kinds.online_dqn import OnlineDQN
from rbve.behaviours.kinds.online_dqn_host import OnlineHostDQN
from rbve.behaviours.kinds.online_r2d2 import OnlineR2D2
from rbve.behaviours.record import Asked, RecordingPlan, choose, record


def quiet(progress: Any) -> None:
    """Nobody listens."""


def record_policy(
    env: Any,
    out: Path,
    policy: Any,
    episodes: int,
    epsilon: float = 0.0,
    on_progress: Any = quiet,
    **fields: Any,
) -> None:
    """A policy, a script, a function, or None = uniform."""
    plan = RecordingPlan(env, out, episodes, epsilon=epsilon, **fields)
    record(choose(Asked(policy), plan), plan, on_progress)


def record_online(
    env: str, out: Path, episodes: int | None = None, options: Any = None, **fields: Any
) -> None:
    """An online DQN inside JAX."""
    record(OnlineDQN(options), RecordingPlan(env, out, episodes, **fields))


def record_online_host(
    env: str, out: Path, episodes: int | None, options: Any, **fields: Any
) -> None:
    """An online DQN outside JAX."""
    record(OnlineHostDQN(options), RecordingPlan(env, out, episodes, **fields))


def record_online_memory(env: str, out: Path, options: Any = None, **fields: Any) -> None:
    """An online R2D2."""
    record(OnlineR2D2(options), RecordingPlan(env, out, **fields))
