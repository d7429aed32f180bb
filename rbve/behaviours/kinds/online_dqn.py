"""An online DQN inside JAX while it learns, with Acme's defaults: policy="online".

Acting, replay and learning are one compiled program. The replay buffer is laid out as the dataset
will be, T + 1 rows an episode, so recording is copying rows out. An n-step item may be sampled
once its window is complete.

Rows are counted from the first on. Row k lies at place k mod the ring's size, so a bounded buffer
forgets its oldest rows; those that were not copied out yet are never overwritten.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from rbve import ops
from rbve.algorithms import NoOptions
from rbve.behaviours import online, priorities
from rbve.behaviours.record import Asked, RecordingPlan, Source, cut, provenance
from rbve.data.dataset import Episode
from rbve.envs.base import Env
from rbve.networks import build, flattened
from rbve.schema import INT32
from rbve.training.update import recorder_key
from rbve.types import Array, Tree

ORDER, LEARNS = 40, True


@dataclass(frozen=True)
class DQNOptions:
    """Acme's DQN defaults."""

    hidden: tuple[int, ...] = (50, 50)  # Acme's bsuite example
    batch_size: int = 256
    learning_rate: float = 1e-3
    gamma: float = 0.99
    n_step: int = 5
    epsilon: float = 0.05  # random actions
    epsilon_steps: int = 0  # environment steps over which they fall from all to `epsilon`
    target_period: int = 100  # learner steps
    steps_per_update: int = 8  # environment steps per learner step (32 samples per insert)
    min_replay: int = 1000  # environment steps before learning starts
    priority_exponent: float = 0.6
    importance_exponent: float = 0.2
    replay: int = 0  # rows kept to learn from; 0 = all
    steps: int = 0  # environment steps of a recording, where no number of episodes is given


# MinAtar: breakout and space_invaders reach 20 and 6 times random within 250,000 steps so.
_MINATAR = DQNOptions(
    hidden=(128,), batch_size=32, learning_rate=2.5e-4, n_step=3, epsilon_steps=100_000,
    target_period=250, steps_per_update=4, min_replay=5000, replay=100_000, steps=500_000,
)  # fmt: skip


def default_options(env_name: str) -> DQNOptions:
    """What the agent is set to where nobody says."""
    return _MINATAR if env_name.startswith("minatar:") else DQNOptions()


def exploration(steps: Any, options: Any, minimum: Callable[..., Any] = jnp.minimum) -> Any:
    """Share of random actions after so many steps: a line from 1 to `epsilon`, then constant."""
    if not options.epsilon_steps:
        return options.epsilon
    done = minimum(steps / options.epsilon_steps, 1.0)
    return 1.0 - done * (1.0 - options.epsilon)


class ReplayBuffer(NamedTuple):
    obs: Array  # (C, ...)
    action: Array  # (C,) int32, chosen by the agent; −1 in final rows
    executed: Array  # (C,) int32, executed by the environment
    reward: Array  # (C,)
    terminated: Array  # (C,) bool
    ended: Array  # (C,) bool, terminated or truncated
    legal: Array | None  # (C, A) bool, where the environment has masks


class State(NamedTuple):
    params: Any  # a network: slicing layers out of one vector would copy them at every step
    target: Any
    opt: Tree
    updates: Array
    env: Tree
    obs: Array
    key: Array
    steps: Array  # environment steps done
    row: Array  # where the next decision goes
    first_row: Array  # of the running episode
    episodes: Array  # complete ones
    buffer: ReplayBuffer
    tree: priorities.Tree


class Limits(NamedTuple):
    """When to stop, whatever comes first."""

    blocks: Array | int  # from now on
    episodes: Array | int = INT32  # in all
    steps: Array | int = INT32  # in all
    copied: Array | int = 0  # rows copied out: younger ones may not be overwritten


class _Agent(NamedTuple):
    init: Callable[[Array], State]
    advance: Callable[[State, Limits], State]
    unravel: Callable[[Array], Any]


def make_agent(env: Env, capacity: int, options: DQNOptions) -> _Agent:
    """Pure functions of an agent whose buffer holds `capacity` rows."""
    n, actions, ring = options.n_step, len(env.actions), capacity + 1
    optimiser = optax.adam(options.learning_rate)
    shape = env.obs_shape, actions, "q", NoOptions(), options.hidden
    build_network = functools.partial(build, *shape)
    unravel = flattened(build_network)[1]

    def q_values(network: Any, obs: Array) -> Array:
        return network(obs, jax.random.key(0)).q

    def legal_in(env_state: Tree) -> Array | None:
        return None if env.legal is None else env.legal(env_state)

    def init(key: Array) -> State:
        key_weights, key_reset, key_run = jax.random.split(key, 3)
        params = build_network(key_weights)
        target, opt = jax.tree.map(jnp.copy, params), optimiser.init(params)
        env_state, obs = env.reset(key_reset)
        rows, legal = capacity + 2, legal_in(env_state)
        buffer = ReplayBuffer(
            obs=jnp.zeros((rows, *env.obs_shape), obs.dtype).at[0].set(obs),
            action=jnp.full(rows, -1, jnp.int32),
            executed=jnp.full(rows, -1, jnp.int32),
            reward=jnp.zeros(rows),
            terminated=jnp.zeros(rows, bool),
            ended=jnp.zeros(rows, bool),
            legal=None if legal is None else jnp.ones((rows, actions), bool).at[0].set(legal),
        )
        zero = jnp.zeros((), jnp.int32)
        return State(
            params, target, opt, zero, env_state, obs, key_run,
            zero, zero, zero, zero, buffer, priorities.empty(rows),
        )  # fmt: skip

    def act(state: State) -> State:
        """One environment step, recorded; the windows it completes become samples."""
        key, key_act, key_step, key_reset = jax.random.split(state.key, 4)
        legal = legal_in(state.env)
        values = ops.mask(q_values(state.params, state.obs[None])[0], legal)
        action, _ = online.explore(values, legal, exploration(state.steps, options), key_act)
        env_state, outcome = env.step(state.env, action, key_step)
        ended, legal_after = outcome.terminated | outcome.truncated, legal_in(env_state)
        env_state, obs = jax.lax.cond(
            ended, lambda: env.reset(key_reset), lambda: (env_state, outcome.obs)
        )
        row, old = state.row, state.buffer
        next_row = row + 1 + ended
        here, after, then = row % ring, (row + 1) % ring, next_row % ring
        buffer = ReplayBuffer(
            obs=old.obs.at[after].set(outcome.obs).at[then].set(obs),
            action=old.action.at[here].set(action),
            executed=old.executed.at[here].set(outcome.executed),
            reward=old.reward.at[here].set(outcome.reward),
            terminated=old.terminated.at[here].set(outcome.terminated),
            # A final row decides nothing, whatever stood there before.
            ended=old.ended.at[here].set(ended).at[after].set(False),
            legal=jax.tree.map(
                lambda held, ends, begins: held.at[after].set(ends).at[then].set(begins),
                old.legal,
                legal_after,
                legal_in(env_state),
            ),
        )
        recent = row - jnp.arange(n)
        complete = (recent >= state.first_row) & (ended | (recent == row - n + 1))
        recent = jnp.where(recent >= 0, recent % ring, ring)  # the last: never used
        # Items that are not complete keep what they have.
        priority = jnp.where(complete, 1.0, state.tree[0][recent])
        if options.replay:
            # What stood at the places written next is forgotten.
            recent = jnp.append(recent, jnp.stack([after, (row + 2) % ring]))
            priority = jnp.append(priority, jnp.zeros(2))
        return state._replace(
            env=env_state,
            obs=obs,
            key=key,
            steps=state.steps + 1,
            row=next_row,
            first_row=jnp.where(ended, next_row, state.first_row),
            episodes=state.episodes + ended,
            buffer=buffer,
            tree=priorities.write(state.tree, recent, priority),
        )

    def window(buffer: ReplayBuffer, row: Array) -> tuple[Array, Array, Array]:
        """n-step reward, discount and bootstrap place of items (K,)."""
        rows = (row[:, None] + jnp.arange(n)) % ring
        ended = buffer.ended[rows]
        before = jnp.cumsum(ended, axis=1) - ended
        inside = before == 0
        steps = jnp.sum(inside, axis=1)
        powers = options.gamma ** jnp.arange(n)
        reward = jnp.sum(jnp.where(inside, buffer.reward[rows] * powers, 0.0), axis=1)
        terminated = jnp.any(inside & buffer.terminated[rows], axis=1)
        discount = jnp.where(terminated, 0.0, options.gamma**steps)
        return reward, discount, (row + steps) % ring

    def learn(state: State) -> State:
        key, key_sample = jax.random.split(state.key)
        row, valid, importance = priorities.sample(
            state.tree, key_sample, options.batch_size, options.importance_exponent
        )
        reward, discount, next_row = window(state.buffer, row)
        obs, next_obs = state.buffer.obs[row], state.buffer.obs[next_row]
        legal = jax.tree.map(lambda held: held[next_row], state.buffer.legal)
        best = jnp.argmax(ops.mask(q_values(state.params, next_obs), legal), axis=-1)
        goal = reward + discount * ops.select(q_values(state.target, next_obs), best)

        def loss(params: Any) -> tuple[Array, Array]:
            error = ops.select(q_values(params, obs), state.buffer.action[row]) - goal
            return jnp.mean(importance * ops.huber(error)), error

        grad, error = jax.grad(loss, has_aux=True)(state.params)
        priority = jnp.where(valid, jnp.abs(error) ** options.priority_exponent, 0.0)
        # Items drawn twice carry the same error, so equal indices carry equal values.
        state = online.descend(state, grad, optimiser, options.target_period)
        return state._replace(key=key, tree=priorities.write(state.tree, row, priority))

    def advance(state: State, limits: Limits) -> State:
        """Whole blocks of environment steps and, once there are enough, a learner step each."""

        def unfinished(carry: tuple[State, Array]) -> Array:
            state, done = carry
            space = state.row + 2 * options.steps_per_update < limits.copied + capacity
            below = (state.episodes < limits.episodes) & (state.steps < limits.steps)
            return (done < limits.blocks) & below & space

        def block(carry: tuple[State, Array]) -> tuple[State, Array]:
            state, done = carry
            state = jax.lax.fori_loop(0, options.steps_per_update, lambda _, s: act(s), state)
            times = (state.steps >= options.min_replay).astype(jnp.int32)
            return jax.lax.fori_loop(0, times, lambda _, s: learn(s), state), done + 1

        return jax.lax.while_loop(unfinished, block, (state, jnp.zeros((), jnp.int32)))[0]

    return _Agent(init, advance, unravel)


@dataclass(frozen=True)
class OnlineDQN:
    """Everything it experiences; the best snapshot lies beside the data.

    Without a number of episodes it ends after `options.steps` environment steps, where they are
    set, and the episode that runs then is left out.
    """

    options: DQNOptions | None = None  # None = those for the environment

    @contextmanager
    def opened(self, plan: RecordingPlan) -> Iterator[Source]:
        options = self.options or default_options(plan.env)
        options = replace(options, steps=plan.steps or options.steps)
        episodes, total = plan.length(options.steps)
        env, quiet = online.jax_environments(plan.env, plan.noise)
        agent = make_agent(env, _rows_needed(env, episodes, options), options)
        compiled = jax.jit(agent.advance, donate_argnums=0)
        form = {"hidden": options.hidden}
        judge = online.SnapshotJudge(quiet, agent.unravel, options.gamma, plan.seed, **form)
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
            online.run_agent(advance, lambda: ravel_pytree(state.params)[0], judge, total, 64),
            functools.partial(online.finish, judge),
            f"{total} steps",
        )


def _rows_needed(env: Env, episodes: int | None, options: DQNOptions) -> int:
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


def claim(asked: Asked) -> OnlineDQN | None:
    """By its name."""
    return OnlineDQN() if asked.policy == "online" and asked.preset is None else None
