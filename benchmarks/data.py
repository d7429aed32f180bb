"""The data of the benchmarks: uniform cartpole, recorded once and handed to every contestant."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rbve import api

EPISODES = 60


def record(folder: Path) -> Path:
    path = folder / "cartpole"
    api.record("cartpole", path, episodes=EPISODES, policy="uniform", overwrite=True)
    return path


def export(path: Path) -> Path:
    """The same transitions as plain arrays: one row per decision, `terminal` on the last."""
    data = api.load(path)
    decision = np.ones(len(data.action), bool)
    final = data.offsets[1:] - 1
    decision[final] = False
    terminal = np.zeros(len(data.action), np.float32)
    terminal[final - 1] = 1
    target = path.with_suffix(".npz")
    np.savez(
        target,
        obs=data.obs.reshape(len(data.obs), -1)[decision].astype(np.float32),
        action=data.action[decision].astype(np.int32),
        reward=data.reward[decision].astype(np.float32),
        terminal=terminal[decision],
    )
    return target
