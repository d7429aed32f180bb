"""The online agent with memory whose learning is the data: R2D2 (Kapturowski et al., 2019).

Many actors side by side, each with an ε of its own; their experience is cut into chunks, and
a sequence to learn from is a few neighbouring chunks with the memory the actor had at its start.
Acting, replay and learning are one compiled program.

Every actor's experience is a line of rows as in a dataset: after the last decision of an episode
comes a row with the final observation and no action, then the next episode.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree

from rbve import ops
from rbve.algorithms import dqn
from rbve.behaviours import online, priorities
from rbve.behaviours.r2d2_options import R2D2Options, check, mixed, shares
from rbve.envs.base import Env
from rbve.networks import build, flattened
from rbve.networks.recurrent import Memory, Seen
from rbve.training.batches.steps import Steps, views_of_steps
from rbve.types import Array, Batch, Tree


class ActorRows(NamedTuple):
    """Of all actors; leading (C, N) for a chunk, (K, C, N) in the ring."""

    obs: Array
    last_action: Array  # int32, −1 at the first row of an episode
    last_reward: Array
    first: Array  # bool
    action: Array  # int32, chosen; −1 in final rows
    executed: Array  # int32, by the environment
    reward: Array
    terminated: Array  # bool, by this row's decision
    final: Array  # bool, no decision here
    legal: Array | None  # (..., A) bool


class _ActorState(NamedTuple):
    """Where the actors stand."""

    env: Tree
    seen: Seen  # (N, ...) each
    final: Array  # (N,) bool, the episode has just ended
    memory: Any  # a Memory


class _State(NamedTuple):
    params: Array
    target: Array
    opt: Tree
    updates: Array
    key: Array
    actors: _ActorState
    chunks: Array  # () int32, acted so far
    ring: ActorRows  # (K, C, N, ...)
    memories: Memory  # (K, H, N), at the start of every chunk
    tree: priorities.Tree  # a leaf per first chunk and actor


class Agent(NamedTuple):
    init: Callable[[Array], _State]
    advance: Callable[[_State, Array], _State]  # state, chunks to act
    unravel: Callable[[Array], Any]
    # What advance is made of:
    sequence: Callable[[_State, Array], tuple[ActorRows, Memory]]  # state, leaves of the tree
    learn: Callable[[_State], _State]  # one update


def make_agent(env: Env, options: R2D2Options) -> Agent:
    check(options)
    count, n = options.actors, options.n_step
    kept, parts = options.chunks, options.burn_in + options.train
    warm = options.burn_in * options.chunk
    optimiser = optax.chain(optax.clip_by_global_norm(40.0), optax.adam(options.learning_rate))
    td = ops.TD("square", rescaled=True)

    shape = env.obs_shape, len(env.actions), "q", dqn.Options(), options.hidden
    build_network = functools.partial(build, *shape, memory=options.memory)
    unravel = flattened(build_network)[1]

    def legal_in(state: Tree) -> Array | None:
        return None if env.legal is None else jax.vmap(env.legal)(state)

    def reset_actors(key: Array) -> _ActorState:
        state, obs = jax.vmap(env.reset)(jax.random.split(key, count))
        start = jnp.full(count, -1, jnp.int32), jnp.zeros(count), jnp.ones(count, bool)
        memory = Memory.empty(options.memory, count)
        return _ActorState(state, Seen(obs, *start), jnp.zeros(count, bool), memory)

    def act(
        params: Array, epsilon: Array, actors: _ActorState, key: Array
    ) -> tuple[_ActorState, ActorRows]:
        """One row of every actor: a decision, or the final observation of an episode."""
        key_act, key_step, key_reset, key_net = jax.random.split(key, 4)
        legal = legal_in(actors.env)
        seen = Seen(*(column[None] for column in actors.seen))
        head, memory = unravel(params)(seen, actors.memory, key_net)
        action, _ = online.explore(ops.mask(head.q, legal), legal, epsilon, key_act)
        stepped, outcome = jax.vmap(env.step)(actors.env, action, jax.random.split(key_step, count))
        fresh = reset_actors(key_reset)
        ended = outcome.terminated | outcome.truncated
        over = actors.final
        row = ActorRows(
            *actors.seen,
            action=jnp.where(over, -1, action),
            executed=jnp.where(over, -1, outcome.executed),
            reward=jnp.where(over, 0.0, outcome.reward),
            terminated=outcome.terminated & ~over,
            final=over,
            legal=legal,
        )
        seen = Seen(outcome.obs, action, outcome.reward, jnp.zeros(count, bool))
        on = _ActorState(stepped, seen, ended, memory)

        def pick(a: Array, b: Array) -> Array:
            return jnp.where(over.reshape(-1, *[1] * (a.ndim - 1)), a, b)

        # Memory is left as it is: `first` empties it.
        apart = (each._replace(memory=()) for each in (fresh, on))
        return jax.tree.map(pick, *apart)._replace(memory=memory), row

    def act_chunk(state: _State) -> _State:
        key, key_act_chunk = jax.random.split(state.key)
        slot = state.chunks % kept
        epsilon = shares(options, state.chunks * options.chunk * count)
        memories = jax.tree.map(
            lambda held, now: held.at[slot].set(now), state.memories, state.actors.memory
        )
        actors, rows = jax.lax.scan(
            lambda actors, key: act(state.params, epsilon, actors, key),
            state.actors,
            jax.random.split(key_act_chunk, options.chunk),
        )
        ring = jax.tree.map(lambda held, fresh: held.at[slot].set(fresh), state.ring, rows)
        # The sequence that began here is gone; the one that ends here may be learned from.
        begun = (state.chunks - parts + 1) % kept
        leaves = jnp.stack([slot, begun])[:, None] * count + jnp.arange(count)
        complete = state.chunks + 1 >= parts
        known = jnp.max(state.tree[0])
        priority = jnp.where(complete, jnp.where(known > 0, known, 1.0), 0.0)
        values = jnp.stack([jnp.zeros(count), jnp.full(count, priority)])
        return state._replace(
            key=key,
            actors=actors,
            chunks=state.chunks + 1,
            ring=ring,
            memories=memories,
            tree=priorities.write(state.tree, leaves.reshape(-1), values.reshape(-1)),
        )

    def sequence(state: _State, leaf: Array) -> tuple[ActorRows, Memory]:
        """ActorRows (L, B, ...) of sequences, and the memory before them (H, B)."""
        slot, actor = leaf // count, leaf % count
        slots = (slot + jnp.arange(parts)[:, None]) % kept  # (P, B)

        def rows(column: Array) -> Array:
            picked = column[slots, :, actor]  # (P, B, C, ...)
            return jnp.moveaxis(picked, 2, 1).reshape(options.rows, -1, *column.shape[3:])

        memory = Memory(*(held[slot, :, actor].T for held in state.memories))
        return jax.tree.map(rows, state.ring), memory

    def learn(state: _State) -> _State:
        key, key_sample, key_loss = jax.random.split(state.key, 3)
        leaf, valid, importance = priorities.sample(
            state.tree, key_sample, options.batch_size, options.importance_exponent
        )
        rows, memory = sequence(state, leaf)
        inputs, batch = sequence_batch(rows, warm, n, options.gamma)
        target = unravel(state.target)
        weight = batch.weight.reshape(-1, options.batch_size)
        steps = jnp.maximum(jnp.sum(weight, axis=0), 1.0)

        def loss(params: Array) -> tuple[Array, Array]:
            keys = jax.random.split(key_loss, 3)
            views = views_of_steps(unravel(params), target, inputs, warm, list(keys), memory)
            value, _ = dqn.loss(views, batch, dqn.Config(), dqn.Options(), td, key_loss)
            value = value.reshape(weight.shape) * weight
            return jnp.mean(importance * jnp.sum(value, axis=0) / steps), jnp.sqrt(value)

        grad, error = jax.grad(loss, has_aux=True)(state.params)
        surprise = jnp.maximum(mixed(error, weight), 1e-6)
        priority = jnp.where(valid, surprise**options.priority_exponent, 0.0)
        state = online.descend(state, grad, optimiser, options.target_period)
        return state._replace(key=key, tree=priorities.write(state.tree, leaf, priority))

    def init(key: Array) -> _State:
        key_weights, key_life, key_run, key_shape = jax.random.split(key, 4)
        params = ravel_pytree(build_network(key_weights))[0]
        actors = reset_actors(key_life)
        shapes = jax.eval_shape(act, params, shares(options, jnp.int32(0)), actors, key_shape)[1]
        ring = jax.tree.map(
            lambda leaf: jnp.zeros((kept, options.chunk, *leaf.shape), leaf.dtype), shapes
        )
        memories = Memory(*(jnp.zeros((kept, options.memory, count)) for _ in Memory._fields))
        zero = jnp.zeros((), jnp.int32)
        return _State(
            params, params.copy(), optimiser.init(params), zero, key_run, actors, zero, ring,
            memories, priorities.empty(kept * count),
        )  # fmt: skip

    def advance(state: _State, chunks: Array) -> _State:
        """Chunks of acting, learning after each once there is enough to learn from."""

        def one(_: Array, state: _State) -> _State:
            state = act_chunk(state)
            acted = state.chunks * options.chunk * count
            ready = (acted >= options.min_replay) & (state.chunks >= parts)
            times = jnp.where(ready, options.updates, 0)
            return jax.lax.fori_loop(0, times, lambda _, s: learn(s), state)

        return jax.lax.fori_loop(0, chunks, one, state)

    return Agent(init, advance, unravel, sequence, learn)


def sequence_batch(rows: ActorRows, warm: int, n: int, gamma: float) -> tuple[Steps, Batch]:
    """What networks see of sequences (L, B), and the Batch of the steps from `warm` on.

    A window of n steps ends with its episode. Where it leaves the sequence its weight is 0.
    """
    length = rows.final.shape[0]
    decides = rows.action >= 0
    reward, terminated = jnp.zeros_like(rows.reward), jnp.zeros_like(rows.final)
    steps = jnp.zeros(rows.final.shape, jnp.int32)
    open_ = jnp.ones_like(rows.final)
    for k in range(n):
        # Beyond the end nothing is decided; there `open_` only says that the window goes on.
        ahead = [jnp.roll(column, -k, axis=0) for column in (decides, rows.reward, rows.terminated)]
        known = (jnp.arange(length) + k < length)[:, None]
        inside = open_ & ahead[0] & known
        reward += jnp.where(inside, gamma**k * ahead[1], 0.0)
        terminated |= inside & ahead[2]
        steps += inside
        open_ &= ahead[0] | ~known
    # Cut by the sequence's end and not by the episode's: no bootstrap state, so no weight.
    later = jnp.arange(length)[:, None] + steps
    whole = decides & (terminated | (later < length))
    train = slice(warm, None)
    later = jnp.minimum(later, length - 1)[train]
    next_action = jnp.take_along_axis(rows.action, later, axis=0).reshape(-1)

    def flat(column: Array) -> Array:
        return column[train].reshape(-1)

    legal = next_legal = None
    if (masks := rows.legal) is not None:
        legal = masks[train].reshape(-1, masks.shape[-1])
        next_legal = jnp.take_along_axis(masks, later[..., None], axis=0).reshape(legal.shape)
    return (
        Steps(Seen(rows.obs, rows.last_action, rows.last_reward, rows.first), later),
        Batch(
            action=jnp.maximum(flat(rows.action), 0),
            reward=flat(reward),
            discount=flat(jnp.where(terminated, 0.0, gamma**steps)),
            next_action=jnp.maximum(next_action, 0),
            has_next_action=next_action >= 0,
            g=jnp.zeros_like(flat(reward)),
            g_scale=jnp.ones(()),
            weight=flat(whole.astype(reward.dtype)),
            legal=legal,
            next_legal=next_legal,
        ),
    )
