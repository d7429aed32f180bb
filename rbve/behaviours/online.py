"""What online agents inside JAX share: environments, the loop, and what lies beside their data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rbve import envs, stopping
from rbve.behaviours.learned import late_return
from rbve.behaviours.record import EXPERT, SECONDS_PER_FLUSH
from rbve.behaviours.snapshots import SnapshotJudge
from rbve.data.dataset import Episode
from rbve.data.formats.native import StoreWriter
from rbve.envs.base import Env
from rbve.evaluation.rollout import random_return


def jax_environments(name: str, noise: float) -> tuple[Env, Env]:
    """The environment with its noise, and without; ValueError where it is not inside JAX."""
    env, quiet = envs.load(name, noise), envs.load(name)
    if not isinstance(env, Env) or not isinstance(quiet, Env):
        raise ValueError(
            f"this online agent runs inside JAX and {name} does not; record it with "
            "--preset rlu-atari (an online DQN without memory), --policy uniform, --policy FILE "
            "or, where one plays it, --policy script"
        )
    return env, quiet


def run_agent(
    advance: Callable[[int, int], tuple[Sequence[Episode], int]],
    params: Callable[[], Any],
    judge: SnapshotJudge,
    total: int,
    blocks: int,
) -> Iterator[tuple[Sequence[Episode], float]]:
    """Episodes of a learning agent, in calls of a few seconds, with snapshots evaluated between.

    Args:
        advance: (goal, blocks) -> fresh episodes, and how far the agent is now.
        params: Its weights now.
        judge: Evaluates snapshots.
        total: How far it goes: episodes, steps or chunks.
        blocks: Work of the first call.
    """
    reached = 0
    while reached < total:
        stopping.check()
        goal = min(total, judge.next_look(total))
        started = time.monotonic()
        fresh, reached = advance(goal, blocks)
        blocks = paced(blocks, time.monotonic() - started)
        yield fresh, min(reached / total, 1.0)
        if reached >= goal:
            judge.look(params())


def paced(blocks: int, seconds: float) -> int:
    """Work of the next call; how it is cut never changes what is recorded."""
    return int(np.clip(blocks * SECONDS_PER_FLUSH / max(seconds, 1e-3), blocks / 2, blocks * 2)) + 1


def finish_online(
    judge: SnapshotJudge, quiet: Env
) -> Callable[[StoreWriter, Sequence[float]], None]:
    """The best snapshot beside the data, and the returns that scores are normalised by."""

    def finish(writer: StoreWriter, returns: Sequence[float]) -> None:
        online, params = judge.verdict()
        judge.policy(params, online).save(writer.path / EXPERT)
        writer.manifest["provenance"] |= {
            "reference": {"online": online, "random": random_return(quiet)},
            "late_return": late_return(returns),
        }

    return finish
