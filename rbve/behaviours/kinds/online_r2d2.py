"""An online R2D2, an agent with memory, while it learns: policy="r2d2"."""

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from rbve.behaviours import online, r2d2, r2d2_options
from rbve.behaviours.record import Asked, RecordingPlan, Source, cut, provenance
from rbve.data.dataset import Episode
from rbve.training.update import recorder_key

ORDER, LEARNS = 30, True
PRESETS = {"rlu-dmlab": "r2d2"}
Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class OnlineR2D2:
    """Everything its actors experience; the best snapshot lies beside the data."""

    options: r2d2_options.R2D2Options | None = None  # None = those for the environment

    @contextmanager
    def opened(self, plan: RecordingPlan) -> Iterator[Source]:
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
        snapshots = online.SnapshotJudge(quiet, agent.unravel, options.gamma, plan.seed, **form)
        compiled = jax.jit(agent.advance, donate_argnums=0)
        state = jax.jit(agent.init)(recorder_key(plan.seed))
        unfinished: list[list[Columns]] = [[] for _ in range(options.actors)]
        done = 0

        def advance(goal: int, blocks: int) -> tuple[Sequence[Episode], int]:
            nonlocal state, done
            more = min(blocks, goal - done, options.chunks)
            state = compiled(state, jnp.int32(more))
            fresh = list(_take_episodes(state.ring, done, done + more, unfinished))
            done += more
            return fresh, done

        yield Source(
            env.actions,
            provenance(plan, "online r2d2", None, r2d2_options.describe(options)),
            None,
            online.run_agent(advance, lambda: state.params, snapshots, total, blocks=4),
            functools.partial(online.finish, snapshots),
            f"{options.steps} steps of {options.actors} actors",
        )


def claim(asked: Asked) -> OnlineR2D2 | None:
    """By its name, or by its preset."""
    if asked.preset in PRESETS:
        return OnlineR2D2(r2d2_options.PAPER)
    return OnlineR2D2() if asked.policy == "r2d2" else None


def _take_episodes(
    ring: r2d2.ActorRows, start: int, stop: int, unfinished: list[list[Columns]]
) -> Iterator[Episode]:
    """Those that ended within the chunks start to stop, chunk by chunk and actor by actor.

    `unfinished` holds, for each actor, the parts of its episode that has not ended yet.
    """
    held = {name: column for name, column in ring._asdict().items() if column is not None}
    for chunk in range(start, stop):
        rows = {name: np.asarray(column[chunk % len(column)]) for name, column in held.items()}
        for actor, parts in enumerate(unfinished):
            begin = 0
            for end in map(int, np.flatnonzero(rows["final"][:, actor]) + 1):
                parts.append({name: column[begin:end, actor] for name, column in rows.items()})
                columns = {name: np.concatenate([p[name] for p in parts]) for name in rows}
                yield cut(columns, 0, len(columns["final"]) - 1)
                parts.clear()
                begin = end
            parts.append({name: column[begin:, actor] for name, column in rows.items()})
