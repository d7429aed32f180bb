"""An online R2D2, an agent with memory, while it learns: policy="r2d2"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from rbve.behaviours import online, r2d2, r2d2_options
from rbve.behaviours.r2d2_options import R2D2Options
from rbve.behaviours.record import RecordingPlan, Source, provenance
from rbve.behaviours.sequence_batch import ActorRows
from rbve.data.dataset import Episode
from rbve.training.update import recorder_key

if TYPE_CHECKING:
    from rbve.behaviours.choose import Asked

ORDER, LEARNS = 30, True
PRESETS = {"rlu-dmlab": "r2d2"}


def claim(asked: Asked) -> OnlineR2D2 | None:
    """By its name, or by its preset."""
    if asked.preset in PRESETS:
        return OnlineR2D2(r2d2_options.PAPER)
    return OnlineR2D2() if asked.policy == "r2d2" else None


@dataclass(frozen=True)
class OnlineR2D2:
    """Everything its actors experience; the best snapshot lies beside the data."""

    options: R2D2Options | None = None  # None = those for the environment

    @contextmanager
    def opened(self, plan: RecordingPlan) -> Iterator[Source]:
        """The agent before its first step."""
        if plan.episodes is not None or plan.keep != 1:
            raise ValueError(
                "an agent with memory is recorded by steps: leave episodes and keep out"
            )
        options = self.options or r2d2_options.default_options(plan.env)
        options = r2d2_options.shortened(options, plan.steps or options.steps)
        env, quiet = online.jax_environments(plan.env, plan.noise)
        total = -(-options.steps // (options.actors * options.chunk))  # chunks
        agent = r2d2.make_agent(env, options)
        form = {"hidden": options.hidden, "memory": options.memory, "rescaled": True}
        judge = online.SnapshotJudge(quiet, agent.unravel, options.gamma, plan.seed, **form)
        compiled = jax.jit(agent.advance, donate_argnums=0)
        state = jax.jit(agent.init)(recorder_key(plan.seed))
        unfinished = [UnfinishedEpisode() for _ in range(options.actors)]
        done = 0

        def advance(goal: int, blocks: int) -> tuple[Sequence[Episode], int]:
            nonlocal state, done
            more = min(blocks, goal - done, options.chunks)
            state = compiled(state, jnp.int32(more))
            fresh = list(take_episodes(state, done, done + more, unfinished))
            done += more
            return fresh, done

        yield Source(
            env.actions,
            provenance(plan, "online r2d2", None, r2d2_options.describe(options)),
            None,
            online.run_agent(advance, lambda: state.params, judge, total, blocks=4),
            online.finish_online(judge, quiet),
            f"{options.steps} steps of {options.actors} actors",
        )


class UnfinishedEpisode:
    """Rows of one actor whose episode has not ended yet."""

    def __init__(self) -> None:
        self.parts: list[dict[str, np.ndarray]] = []

    def end(self) -> dict[str, np.ndarray]:
        parts, self.parts = self.parts, []
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def take_episodes(
    state: r2d2.State, start: int, stop: int, unfinished: list[UnfinishedEpisode]
) -> Iterator[Episode]:
    """Those that ended within the chunks start to stop, chunk by chunk and actor by actor."""
    kept = state.ring.final.shape[0]
    for chunk in range(start, stop):
        rows = jax.tree.map(lambda column, k=chunk: np.asarray(column[k % kept]), state.ring)
        for actor, running in enumerate(unfinished):
            begin = 0
            for end in np.flatnonzero(rows.final[:, actor]):
                running.parts.append(_piece(rows, begin, int(end) + 1, actor))
                yield _episode_of(running.end())
                begin = int(end) + 1
            if begin < len(rows.final):
                running.parts.append(_piece(rows, begin, len(rows.final), actor))


def _piece(rows: ActorRows, begin: int, end: int, actor: int) -> dict[str, np.ndarray]:
    known = {name: column for name, column in rows._asdict().items() if column is not None}
    return {name: column[begin:end, actor] for name, column in known.items()}


def _episode_of(columns: dict[str, Any]) -> Episode:
    return Episode(
        obs=columns["obs"],
        action=columns["action"],  # none in the final row
        reward=columns["reward"],
        terminated=bool(columns["terminated"][-2]),
        executed=columns["executed"],
        legal=columns.get("legal"),
    )
