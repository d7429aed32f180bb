"""An online DQN inside JAX while it learns: policy="online"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import jax
import numpy as np

from rbve.behaviours import online
from rbve.behaviours.dqn import (
    DQNOptions,
    Limits,
    ReplayBuffer,
    default_options,
    make_agent,
    places,
)
from rbve.behaviours.record import RecordingPlan, Source, provenance
from rbve.data.dataset import NO_ACTION, Episode
from rbve.envs.base import Env
from rbve.training.update import recorder_key

if TYPE_CHECKING:
    from rbve.behaviours.choose import Asked

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
        by_steps = plan.episodes is None and options.steps > 0
        episodes = None if by_steps else plan.episodes_or_default
        env, quiet = online.jax_environments(plan.env, plan.noise)
        plan.check_keep(by_steps)
        total = options.steps if episodes is None else episodes
        agent = make_agent(env, rows_needed(env, episodes, options), options)
        compiled = jax.jit(agent.advance, donate_argnums=0)
        judge = online.SnapshotJudge(
            quiet, agent.unravel, options.gamma, plan.seed, hidden=options.hidden
        )
        state = jax.jit(agent.init)(recorder_key(plan.seed))
        row = taken = 0

        def advance(goal: int, blocks: int) -> tuple[Sequence[Episode], int]:
            nonlocal state, row, taken
            limit = {"steps" if by_steps else "episodes": goal}
            state = compiled(state, Limits(blocks, copied=row, **limit))
            most = None if episodes is None else episodes - taken
            fresh, row = take_episodes(state.buffer, row, int(state.row), most)
            taken += len(fresh)
            return fresh, int(state.steps if by_steps else state.episodes)

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
    place = np.arange(first, row) % places(buffer)
    columns = {
        name: np.asarray(column)[place]
        for name, column in buffer._asdict().items()
        if column is not None
    }
    taken, start = [], 0
    for last in np.flatnonzero(columns["ended"])[:at_most]:
        steps = slice(start, last + 1)
        taken.append(
            Episode(
                obs=columns["obs"][start : last + 2],
                action=np.append(columns["action"][steps], NO_ACTION),
                reward=np.append(columns["reward"][steps], np.float32(0)),
                terminated=bool(columns["terminated"][last]),
                executed=np.append(columns["executed"][steps], NO_ACTION),
                legal=columns["legal"][start : last + 2] if "legal" in columns else None,
            )
        )
        start = last + 2
    return taken, first + start
