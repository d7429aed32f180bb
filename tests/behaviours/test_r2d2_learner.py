"""One update of the online agent with memory, against a walk through its sequences step by step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import envs
from rbve.behaviours import priorities, r2d2, r2d2_options
from rbve.networks.recurrent import Memory, Seen

OPTIONS = r2d2_options.R2D2Options(
    memory=8, hidden=(6,), actors=4, chunk=5, burn_in=1, train=2, batch_size=4, n_step=3,
    target_period=3, steps_per_update=20, min_replay=10**6, replay=300, steps=800,
)  # fmt: skip
WARM, ROWS, SLOTS = 5, 15, 15  # rows that warm the memory, of a sequence; chunks the ring holds


@pytest.fixture(scope="module")
def agent() -> r2d2.Agent:
    return r2d2.make_agent(envs.load("memory_len:3"), OPTIONS)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def lived(agent: r2d2.Agent) -> Any:
    """17 chunks in a ring of 15, nothing learned yet; the target is another network."""
    state = jax.jit(agent.advance)(agent.init(jax.random.key(3)), 17)
    tree = priorities.write(state.tree, jnp.arange(8, 60), jnp.linspace(0.1, 4.0, 52))
    return state._replace(target=agent.init(jax.random.key(4)).params, tree=tree)


def test_a_sequence_goes_on_where_the_ring_begins_again(agent: r2d2.Agent, lived: Any) -> None:
    actor = 2
    rows, memory = jax.jit(agent.sequence)(lived, jnp.array([14 * OPTIONS.actors + actor]))
    for found, ring in zip(rows, lived.ring, strict=True):
        if ring is not None:
            chunks = [np.asarray(ring)[slot][:, actor] for slot in (14, 0, 1)]
            np.testing.assert_array_equal(np.asarray(found)[:, 0], np.concatenate(chunks))
    np.testing.assert_array_equal(memory.cell[:, 0], lived.memories.cell[14, :, actor])
    np.testing.assert_array_equal(memory.hidden[:, 0], lived.memories.hidden[14, :, actor])
    # It is one life: every row but the first follows the row before it.
    first = np.asarray(rows.first)[1:, 0]
    before = np.where(first, -1, np.asarray(rows.action)[:-1, 0])
    np.testing.assert_array_equal(np.asarray(rows.last_action)[1:, 0], before)


def h(x: Any) -> Any:
    return jnp.sign(x) * (jnp.sqrt(jnp.abs(x) + 1) - 1) + 1e-3 * x


def h_inverse(y: Any) -> Any:
    root = (jnp.sqrt(1 + 4e-3 * (jnp.abs(y) + 1 + 1e-3)) - 1) / 2e-3
    return jnp.sign(y) * (root**2 - 1)


def values(network: Any, rows: Any, memory: Memory) -> Any:
    """Q (L, A) of one sequence; no gradient passes what only warms the memory."""

    def part(rows: Any, memory: Memory) -> tuple[Any, Memory]:
        head, memory = network(Seen(*rows[:4]), memory, jax.random.key(0))
        return head.q, memory

    before, after = ([c[s] for c in rows[:4]] for s in (slice(0, WARM), slice(WARM, None)))
    warm, memory = part(before, memory)
    q, _ = part(after, jax.lax.stop_gradient(memory))
    return jnp.concatenate([warm, q])


def errors(q: Any, target: Any, rows: Any) -> list[Any]:
    """What is learned from one sequence, decision by decision."""
    found = []
    action, reward, terminated, final = (
        np.asarray(c)[:, 0] for c in (rows.action, rows.reward, rows.terminated, rows.final)
    )
    for row in range(WARM, ROWS):
        if final[row]:
            continue
        gain, later = 0.0, row
        over = False
        while later < min(row + OPTIONS.n_step, ROWS) and not final[later] and not over:
            gain += OPTIONS.gamma ** (later - row) * reward[later]
            over = bool(terminated[later])
            later += 1
        if not over and later == ROWS:
            continue  # its window leaves the sequence
        goal = gain
        if not over:
            best = target[later][jnp.argmax(q[later])]
            goal += OPTIONS.gamma ** (later - row) * h_inverse(best)
        found.append(q[row][action[row]] - jax.lax.stop_gradient(h(goal)))
    return found


def test_one_update(agent: r2d2.Agent, lived: Any) -> None:
    after = jax.jit(agent.learn)(lived)
    _, key_sample, _ = jax.random.split(lived.key, 3)
    leaves, valid, importance = priorities.sample(
        lived.tree, key_sample, OPTIONS.batch_size, OPTIONS.importance_exponent
    )
    chance = np.asarray(lived.tree[0])[leaves]
    np.testing.assert_allclose(importance, (chance / chance.min()) ** -0.6, rtol=1e-5)
    assert valid.all()
    assert len(set(leaves.tolist())) == OPTIONS.batch_size
    sequence = jax.jit(agent.sequence)
    pieces = [sequence(lived, leaves[k : k + 1]) for k in range(OPTIONS.batch_size)]

    def loss(params: Any) -> tuple[Any, list[Any]]:
        terms, counts = [], []
        for (rows, memory), share in zip(pieces, importance, strict=True):
            q = values(agent.unravel(params), rows, memory)
            target = values(agent.unravel(lived.target), rows, memory)
            delta = jnp.stack(errors(q, target, rows))
            terms.append(share * jnp.mean(delta**2))
            size = jnp.abs(delta)
            counts.append((0.9 * size.max() + 0.1 * size.mean()) ** 0.9)
        return jnp.mean(jnp.stack(terms)), counts

    grad, counts = jax.jit(jax.grad(loss, has_aux=True))(lived.params)
    np.testing.assert_allclose(np.asarray(after.tree[0])[leaves], counts, rtol=1e-4)
    untouched = np.setdiff1d(np.arange(60), leaves)
    np.testing.assert_array_equal(
        np.asarray(after.tree[0])[untouched], np.asarray(lived.tree[0])[untouched]
    )
    norm = float(jnp.linalg.norm(grad))
    assert 0 < norm < 40  # nothing is clipped
    moment = np.asarray(after.opt[1][0].mu) / 0.1
    np.testing.assert_allclose(moment, grad, rtol=0, atol=1e-5 * norm)
    assert int(after.updates) == 1
    np.testing.assert_array_equal(after.target, lived.target)
