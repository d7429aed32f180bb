"""Recording an online agent with memory: its actors' lives, cut into episodes as they end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve import stopping
from rbve.behaviours import online_r2d2, r2d2_options
from rbve.behaviours.lessons import Rows
from rbve.behaviours.record import (
    EXPERT,
    OnProgress,
    Progress,
    finish_online,
    inside_jax,
    need_episode,
    paced,
    provenance,
)
from rbve.behaviours.snapshots import SnapshotJudge
from rbve.data.dataset import Episode
from rbve.data.formats.native import recording
from rbve.training.update import recorder_key


def record_online_memory(
    env_name: str,
    out: Path,
    noise: float = 0.0,
    seed: int = 0,
    overwrite: bool = False,
    options: r2d2_options.Options | None = None,
    on_progress: OnProgress = lambda progress: None,
) -> None:
    """Everything the actors of an online R2D2 live through; the best snapshot lies beside it."""
    options = options or r2d2_options.preset(env_name)
    env, quiet = inside_jax(env_name, noise)
    total = -(-options.steps // (options.actors * options.chunk))  # chunks
    about = provenance(env_name, "online r2d2", noise, seed, None, 1.0, options)
    about["agent"] = r2d2_options.described(options)
    with recording(out, env.actions, about, overwrite, EXPERT) as writer:
        agent = online_r2d2.make_agent(env, options)
        form = {"hidden": options.hidden, "memory": options.memory, "rescaled": True}
        judge = SnapshotJudge(quiet, agent.unravel, options.gamma, seed, **form)
        advance = jax.jit(agent.advance, donate_argnums=0)
        state = jax.jit(agent.init)(recorder_key(seed))
        lives = [Unfinished() for _ in range(options.actors)]
        returns: list[float] = []
        done, blocks = 0, 4
        while done < total:
            stopping.check()
            goal = min(total, judge.next_look(total))
            more = min(blocks, goal - done, options.chunks)
            started = time.monotonic()
            state = advance(state, jnp.int32(more))
            fresh = list(take_episodes(state, done, done + more, lives))
            blocks = paced(blocks, time.monotonic() - started)
            done += more
            writer.append(fresh)
            returns += [float(each.reward.sum(dtype=np.float64)) for each in fresh]
            if done >= goal:
                judge.look(state.params)
            if fresh:
                on_progress(Progress(len(returns), returns[-1], done / total))
        need_episode(writer, f"{options.steps} steps of {options.actors} actors")
        finish_online(writer, judge, quiet, returns)


class Unfinished:
    """Rows of one actor whose episode has not ended yet."""

    def __init__(self) -> None:
        self.parts: list[dict[str, np.ndarray]] = []

    def end(self) -> dict[str, np.ndarray]:
        parts, self.parts = self.parts, []
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def take_episodes(
    state: online_r2d2.State, start: int, stop: int, lives: list[Unfinished]
) -> Iterator[Episode]:
    """Those that ended within the chunks start to stop, chunk by chunk and actor by actor."""
    kept = state.ring.final.shape[0]
    for chunk in range(start, stop):
        rows = jax.tree.map(lambda column, k=chunk: np.asarray(column[k % kept]), state.ring)
        for actor, life in enumerate(lives):
            begin = 0
            for end in np.flatnonzero(rows.final[:, actor]):
                life.parts.append(piece(rows, begin, int(end) + 1, actor))
                yield episode_of(life.end())
                begin = int(end) + 1
            if begin < len(rows.final):
                life.parts.append(piece(rows, begin, len(rows.final), actor))


def piece(rows: Rows, begin: int, end: int, actor: int) -> dict[str, np.ndarray]:
    known = {name: column for name, column in rows._asdict().items() if column is not None}
    return {name: column[begin:end, actor] for name, column in known.items()}


def episode_of(columns: dict[str, Any]) -> Episode:
    return Episode(
        obs=columns["obs"],
        action=columns["action"],  # none in the final row
        reward=columns["reward"],
        terminated=bool(columns["terminated"][-2]),
        executed=columns["executed"],
        legal=columns.get("legal"),
    )
