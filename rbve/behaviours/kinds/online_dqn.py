"""An online DQN inside JAX while it learns: policy="online"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

import jax
import numpy as np

from rbve.behaviours import online
from rbve.behaviours.choose import Asked
from rbve.behaviours.dqn import DQNOptions, Limits, ReplayBuffer, default_options, make_agent
from rbve.behaviours.record import RecordingPlan, Source, cut, provenance
from rbve.data.dataset import Episode
from rbve.envs.base import Env
from rbve.training.update import recorder_key

ORDER, LEARNS = 40, True


def claim(asked: Asked) -> OnlineDQN | None:
    """By its name."""
    return OnlineDQN() if asked.policy == "online" and asked.preset is None else None


@dataclass(frozen=True)
class OnlineDQN:
    """Everything it experiences; the best snapshot lies beside the data.

    Without a number of episodes it ends after `options.steps` environment steps, where they are
    set, and the episode that runs then is left out.
    """

    options: DQNOptions | None = None  # None = those for the environment

    @contextmanager
    def opened(self, plan: RecordingPlan) -> Iterator[Source]:
        """The agent before its first step."""
        options = self.options or default_options(plan.env)
        options = replace(options, steps=plan.steps or options.steps)
        episodes, total = plan.length(options.steps)
        env, quiet = online.jax_environments(plan.env, plan.noise)
        agent = make_agent(env, rows_needed(env, episodes, options), options)
        compiled = jax.jit(agent.advance, donate_argnums=0)
        judge = online.SnapshotJudge(
            quiet, agent.unravel, options.gamma, plan.seed, hidden=options.hidden
        )
        state = jax.jit(agent.init)(recorder_key(plan.seed))
        row = taken = 0

        def advance(goal: int, blocks: int) -> tuple[Sequence[Episode], int]:
            nonlocal state, row, taken
            limit = {"steps" if episodes is None else "episodes": goal}
            state = compiled(state, Limits(blocks, copied=row, **limit))
            most = None if episodes is None else episodes - taken
            fresh, row = take_episodes(state.buffer, row, int(state.row), most)
            taken += len(fresh)
            return fresh, int(state.steps if episodes is None else state.episodes)

        yield Source(
            env.actions,
            provenance(plan, "online dqn", episodes, asdict(options)),
            episodes,
            online.run_agent(advance, lambda: state.params, judge, total, blocks=64),
            online.finish_online(judge, quiet),
            f"{total} steps",
        )


def rows_needed(env: Env, episodes: int | None, options: DQNOptions) -> int:
    """Rows of a replay buffer that holds everything, or what the agent learns from."""
    margin = 4 * options.steps_per_update
    if not options.replay:
        most = 2 * options.steps if episodes is None else episodes * (env.max_steps + 1)
        return most + margin
    if options.replay < env.max_steps + margin:
        raise ValueError(
            f"a replay of {options.replay} rows does not hold an episode of {env.max_steps} steps; "
            f"give at least {env.max_steps + margin}"
        )
    return options.replay


def take_episodes(
    buffer: ReplayBuffer, first: int, row: int, at_most: int | None = None
) -> tuple[list[Episode], int]:
    """Complete episodes from row `first` on, and where the next one starts."""
    place = np.arange(first, row) % (len(buffer.action) - 1)  # the last row is never used
    held = {name: column for name, column in buffer._asdict().items() if column is not None}
    columns = {name: np.asarray(column)[place] for name, column in held.items()}
    taken, start = [], 0
    for last in np.flatnonzero(columns["ended"])[:at_most]:
        taken.append(cut(columns, start, last + 1 - start))
        start = last + 2
    return taken, first + start
