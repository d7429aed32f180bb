"""Sequences against a slow reference that walks every episode step by step."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import ops
from rbve.data.dataset import Dataset
from rbve.data.episode import Episode
from rbve.data.transitions import View
from rbve.training import sequences
from rbve.training.spec import Spec, resolve
from rbve.training.table import pack_sequences
from rbve.training.update import Member, make_program
from rbve.training.views import of_sequences

GAMMA, N, ACTIONS, UNITS = 0.9, 3, 3, 4
LENGTHS = (6, 2, 4, 1, 7)  # decisions
TERMINATED = (True, False, True, True, False)


@pytest.fixture(scope="module")
def data() -> Dataset:
    rng = np.random.default_rng(0)
    episodes = []
    for length, terminated in zip(LENGTHS, TERMINATED, strict=True):
        legal = rng.random((length + 1, ACTIONS)) < 0.7
        action = rng.integers(0, ACTIONS, length)
        legal[np.arange(length), action] = True
        legal[-1, 0] = True
        episode = Episode.from_steps(
            rng.normal(size=(length + 1, 2)).astype(np.float32),
            action,
            rng.normal(size=length) * 3,
            terminated,
        )
        episodes.append(episode._replace(legal=legal))
    return Dataset.from_episodes(episodes, ACTIONS)


class Reference:
    """Q of every row of the data for one network, in float64, from `starts` on."""

    def __init__(self, network: Any, data: Dataset) -> None:
        self.network = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), network)
        self.data = data

    def q(self, start: int, stop: int) -> dict[int, np.ndarray]:
        """Rows start to stop, memory empty at start and wherever an episode begins."""
        data, net = self.data, self.network
        firsts = set(data.offsets[:-1].tolist())
        hidden = cell = np.zeros(UNITS)
        found = {}
        for row in range(max(start, 0), stop):
            if row in firsts:
                hidden, cell = np.zeros(UNITS), np.zeros(UNITS)
            x = data.obs[row].astype(np.float64)
            for layer in net.torso.layers:
                x = np.maximum(layer.weight @ x + layer.bias, 0)
            last = np.zeros(ACTIONS)
            reward = 0.0
            if row not in firsts:
                last[data.action[row - 1]] = 1
                reward = float(data.reward[row - 1])
            x = np.concatenate([x, last, [np.tanh(reward)]])
            gates = net.lstm.inputs.weight @ x + net.lstm.inputs.bias + net.lstm.recurrent @ hidden
            into, forget, candidate, out = np.split(gates, 4)
            cell = sigmoid(forget) * cell + sigmoid(into) * np.tanh(candidate)
            hidden = sigmoid(out) * np.tanh(cell)
            found[row] = self.head(hidden)
        return found

    def head(self, hidden: np.ndarray) -> np.ndarray:
        head = self.network.head
        if hasattr(head, "out"):
            return head.out.weight @ hidden + head.out.bias
        layer = np.maximum(head.hidden.weight @ hidden + head.hidden.bias, 0)
        value = head.value.weight @ layer[:UNITS] + head.value.bias
        advantage = head.advantage.weight @ layer[UNITS:] + head.advantage.bias
        return value + advantage - advantage.mean()


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def h(x: float) -> float:
    return np.sign(x) * (np.sqrt(abs(x) + 1) - 1) + 1e-3 * x


def h_inverse(y: float) -> float:
    low, high = -1e6, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if h(middle) < y else (low, middle)
    return low


def decisions(data: Dataset, pair: bool) -> dict[int, tuple[float, float, int]]:
    """row -> n-step reward, discount and bootstrap row, by walking; BVE needs a logged pair."""
    found = {}
    ends = data.offsets[1:] - 1
    for first, final, terminated in zip(data.offsets[:-1], ends, data.terminated, strict=True):
        last = final if terminated or not pair else final - 1
        for row in range(first, final):
            stop = min(row + N, last)
            if stop == row:
                continue  # the last decision of a truncated episode
            reward = sum(GAMMA**k * float(data.reward[row + k]) for k in range(stop - row))
            over = terminated and stop == final
            found[row] = reward, 0.0 if over else GAMMA ** (stop - row), stop
    return found


def wanted_loss(
    name: str,
    data: Dataset,
    nets: tuple[Reference, Reference],
    items: list[tuple[int, int, int]],
    rescaled: bool,
) -> float:
    """Mean over all trained steps of a batch of (first row, low, high)."""
    known = decisions(data, pair=name in ("bve", "rbve"))
    g = to_go(data)
    if name == "bc":
        known = {row: (0.0, 0.0, row) for row in range(len(data.action)) if data.action[row] >= 0}
    trained = [(item, row) for item in items for row in range(item[1], item[2]) if row in known]
    baseline = np.mean([g[row] for _, row in trained])
    losses = []
    for (first, _, high), row in trained:
        stop = min(high + N, len(data.action))
        q, target = (net.q(first, stop) for net in nets)
        reward, discount, later = known[row]
        action, legal = data.action[row], data.legal[row]
        if name == "bc":
            logits = np.where(legal, q[row], -np.inf)
            losses.append(np.log(np.exp(logits).sum()) - q[row][action])
            continue
        if name in ("bve", "rbve"):
            next_q = target[later][data.action[later]] if discount else 0.0
        else:
            best = np.argmax(np.where(data.legal[later], q[later], -np.inf))
            next_q = target[later][best]
        goal = reward + discount * (h_inverse(next_q) if rescaled else next_q)
        goal = h(goal) if rescaled else goal
        value = (q[row][action] - goal) ** 2
        if name in ("rbve", "rdqn"):
            weight = min(np.exp((g[row] - baseline) / 0.5), 20.0)
            value += (
                0.3
                * weight
                * sum(
                    max(q[row][i] - q[row][action] + 0.05, 0) ** 2
                    for i in range(ACTIONS)
                    if i != action and legal[i]
                )
            )
        if name == "cql":
            value += 0.2 * (np.log(np.exp(q[row][legal]).sum()) - q[row][action])
        losses.append(value)
    return float(np.mean(losses))


def to_go(data: Dataset) -> np.ndarray:
    result = np.zeros(len(data.action))
    for first, after in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        for row in range(first, after):
            result[row] = sum(GAMMA**k * data.reward[row + k] for k in range(after - row))
    return result


SETTINGS: dict[str, dict[str, Any]] = {
    "rbve": {"lam": 0.3, "normalise": "none"},
    "rdqn": {"lam": 0.3, "normalise": "none"},
    "cql": {"alpha": 0.2},
}


def program_for(name: str, data: Dataset, batch: int, **plan: Any) -> tuple[Any, Any, Spec, Any]:
    base = Spec(
        algorithm=name, memory=UNITS, hidden=(5,), gamma=GAMMA, n_step=N, batch_size=batch, **plan
    )
    spec, config = resolve(base, SETTINGS.get(name, {}))
    bootstrap: Any = spec.load_algorithm().bootstrap
    table = pack_sequences([data], spec.view, bootstrap, spec.sequence, spec.burn_in)
    return table, make_program(spec, table.layout), spec, config


def member(program: Any, config: Any, table: Any) -> Member:
    return Member(
        key=jax.random.key(5),
        offset=jnp.int32(0),
        size=jnp.int32(table.count[0]),
        g_scale=jnp.float32(table.g_scale[0]),
        learning_rate=jnp.float32(1e-3),
        target_period=jnp.int32(1000),
        config=jax.tree.map(jnp.float32, program.algorithm.config(**config)),
    )


@pytest.mark.parametrize(
    ("name", "plan", "count"),
    [
        ("bve", {}, 4),  # sequences there are: all of them are walked
        ("bve", {"rescale": False}, 4),
        ("bc", {}, 4),
        ("rbve", {"sequence": 4, "burn_in": 3}, 6),
        ("dqn", {"sequence": 4, "burn_in": 3}, 6),
        ("dqn", {"rescale": False}, 4),
        ("cql", {}, 4),
        ("rdqn", {"sequence": 5}, 5),
    ],
)
def test_the_unrolled_loss_equals_a_walk_through_the_episodes(
    name: str, plan: dict[str, Any], count: int, data: Dataset
) -> None:
    table, program, spec, config = program_for(name, data, batch=count, **plan)
    index = np.arange(table.count[0])
    assert len(index) == count
    picked = table.columns[0].pick(index)
    state = program.init(jax.random.key(0))
    other = program.init(jax.random.key(1))
    state = state._replace(target=other.params)
    batches = jax.tree.map(lambda column: jnp.asarray(column)[None], picked)
    after, sums = jax.jit(program.advance_given)(state, batches, member(program, config, table), 1)
    nets = tuple(Reference(program.unravel(p), data) for p in (state.params, other.params))
    items = [tuple(item) for item in table.columns[0].items[index].tolist()]
    wanted = wanted_loss(name, data, nets, items, bool(spec.rescale))
    np.testing.assert_allclose(float(sums["loss"]), wanted, rtol=2e-5)
    assert int(after.step) == 1
    assert float(jnp.abs(after.params - state.params).max()) > 1e-5


def test_rows_in_memory_are_the_rows_picked(data: Dataset) -> None:
    for plan in ({}, {"sequence": 4, "burn_in": 3}):
        table, _, _, _ = program_for("bve", data, batch=2, **plan)
        index = np.arange(table.count[0])
        picked = table.columns[0].pick(index)
        fetched = table.layout.fetch(jax.tree.map(jnp.asarray, table.rows), jnp.asarray(index))
        # All rows of the data, those that warm the memory or are bootstrapped from as well.
        first = table.columns[0].items[index, 0][:, None]
        row = first + np.arange(table.layout.plan.rows)
        there = (row >= 0) & (row < len(data.action))
        for mine, theirs in zip(fetched, picked, strict=True):
            np.testing.assert_array_equal(np.asarray(mine)[there], theirs[there])


def test_every_decision_is_trained_on_once(data: Dataset) -> None:
    for plan in ({}, {"sequence": 4, "burn_in": 3}, {"sequence": 1}):
        table, _, _, _ = program_for("bve", data, batch=2, **plan)
        columns = table.columns[0]
        rows, _ = columns.rows_of(np.arange(len(columns.items)))
        weight = columns.pick(np.arange(len(columns.items))).scalars[..., sequences.WEIGHT]
        counts = np.bincount(rows[weight > 0], minlength=len(data.action))
        wanted = [row in decisions(data, pair=True) for row in range(len(data.action))]
        np.testing.assert_array_equal(counts, np.array(wanted, int))


def test_whole_episodes_share_a_sequence_where_they_fit() -> None:
    offsets = np.array([0, 7, 10, 15, 17, 25])
    found = sequences.packs(offsets, longest=8)
    np.testing.assert_array_equal(found, [[0, 0, 7], [7, 7, 15], [15, 15, 17], [17, 17, 25]])


@pytest.mark.parametrize(("name", "lengths"), [("dqn", (6, 3)), ("rbve", (6, 6))])
def test_a_batch_equals_its_episodes_one_by_one(name: str, lengths: tuple[int, int]) -> None:
    """Losses are means over steps, so those of single episodes add up by their steps.

    Where E[V̂] counts, returns of the first episode are those of the second as well: it is the same
    in any batch.
    """
    rng = np.random.default_rng(0)
    action, reward = rng.integers(0, ACTIONS, 6), rng.normal(size=6) * 3
    episodes = [
        Episode.from_steps(
            rng.normal(size=(count + 1, 2)).astype(np.float32), action[:count], reward[:count], True
        )
        for count in lengths
    ]
    data = Dataset.from_episodes(episodes, ACTIONS)
    table, program, spec, config = program_for(name, data, batch=2)
    state = program.init(jax.random.key(0))
    columns = table.columns[0]

    def learned(index: list[int]) -> tuple[float, np.ndarray]:
        """Loss, and the first moment, which is the gradient but for a factor."""
        alone = make_program(dataclasses.replace(spec, batch_size=len(index)), table.layout)
        picked = columns.pick(np.array(index))
        batches = jax.tree.map(lambda column: jnp.asarray(column)[None], picked)
        advance = jax.jit(alone.advance_given)
        after, sums = advance(state, batches, member(alone, config, table), 1)
        return float(sums["loss"]), np.asarray(after.opt.mu)

    (one, grad_one), (two, grad_two), (both, grad_both) = (learned(k) for k in ([0], [1], [0, 1]))
    share = lengths[0] / sum(lengths)
    assert both == pytest.approx(share * one + (1 - share) * two, rel=1e-5)
    assert one != pytest.approx(two, rel=1e-2)
    wanted, scale = share * grad_one + (1 - share) * grad_two, np.abs(grad_both).max()
    np.testing.assert_allclose(grad_both, wanted, rtol=0, atol=1e-5 * scale)


def test_no_gradient_reaches_the_steps_that_warm_the_memory(data: Dataset) -> None:
    """A change of a warming observation moves the loss, and the gradient is as if it were given."""
    from rbve.training.views import remembered

    table, program, _, _ = program_for("bve", data, batch=2, sequence=4, burn_in=3)
    picked = jax.tree.map(jnp.asarray, table.columns[0].pick(np.array([1, 2])))
    given, _ = table.layout.batch(picked, jnp.float32(1))
    network = program.unravel(program.init(jax.random.key(0)).params)

    @jax.jit
    def total(obs: Any) -> Any:
        return jnp.sum(remembered(network, given.seen._replace(obs=obs), 3) ** 2)

    grad = np.asarray(jax.jit(jax.grad(total))(given.seen.obs))
    assert not grad[:3].any()
    assert grad[3:].any()
    moved = given.seen.obs.at[2].add(1.0)
    assert float(total(moved)) != float(total(given.seen.obs))


def test_rescaling_and_back() -> None:
    x = np.array([-1e4, -300.0, -1.0, -1e-3, 0.0, 1e-3, 0.5, 7.0, 300.0, 1e4])
    found = ops.rescale(jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(found, [h(value) for value in x], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ops.unscale(found), x, rtol=1e-4, atol=1e-6)
    td = ops.TD("square", rescaled=True)
    goal = td.target(jnp.float32(2.0), jnp.float32(0.5), jnp.float32(h(8.0)))
    np.testing.assert_allclose(goal, h(2 + 0.5 * 8), rtol=1e-5)


def test_fragments_have_no_memory(data: Dataset) -> None:
    fragment = dataclasses.replace(data, complete=np.zeros(data.num_episodes, bool))
    with pytest.raises(ValueError, match="train without memory"):
        pack_sequences([fragment], View(GAMMA), "pair", 0, 0)


@pytest.mark.parametrize(("sequence", "burn_in"), [(26, 0), (4, 26)])
def test_windows_larger_than_all_the_data(data: Dataset, sequence: int, burn_in: int) -> None:
    with pytest.raises(ValueError, match=f"windows of {sequence} .* the data, 25 rows in all"):
        pack_sequences([data], View(GAMMA), "pair", sequence, burn_in)
    assert pack_sequences([data], View(GAMMA), "pair", 25, 25).count.tolist() == [1]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"sequence": 10}, "add --memory"),
        ({"memory": 8, "burn_in": 4}, "--sequence"),
        ({"memory": 8, "stack": 4}, "--stack"),
        ({"memory": -1}, "memory must lie"),
    ],
)
def test_plans_that_make_no_sense(plan: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Spec(**plan)  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ["dqn", "bc", "rem", "iqn"])
def test_heads_are_those_of_the_steps(data: Dataset, algorithm: str) -> None:
    """Said once and looked up, or where they are drawn, said again of the steps looked up."""
    options = {"heads": 3} if algorithm == "rem" else {}
    spec, _ = resolve(Spec(algorithm, memory=UNITS, hidden=(5,), batch_size=4, n_step=N), options)
    table = pack_sequences([data], spec.view, spec.load_algorithm().bootstrap, 0, 0, True)
    program = make_program(spec, table.layout)
    nets = [program.unravel(program.init(jax.random.key(k)).params) for k in (0, 1)]
    rows = jax.tree.map(jnp.asarray, table.rows)
    picked = table.layout.fetch(rows, jnp.arange(4))
    inputs, _ = table.layout.batch(picked, jnp.float32(1.0))
    keys = list(jax.random.split(jax.random.key(2), 3))
    found = jax.jit(of_sequences, static_argnums=3)(*nets, inputs, 0, keys)
    steps, batch = inputs.later.shape
    every = np.arange(steps)[:, None], inputs.later, inputs.later
    for view, net, step in zip(found, (nets[0], *nets), every, strict=True):
        remembered, _ = net.unroll(inputs.seen, net.start(batch))
        asked = np.broadcast_to(step, (steps, batch))[..., None]
        assert view.q.shape == (steps * batch, ACTIONS)
        if algorithm == "iqn":  # each draws quantile levels of its own
            continue
        whole = net.heads(remembered, keys[0]).q.reshape(len(remembered), batch, ACTIONS)
        wanted = np.take_along_axis(np.asarray(whole), asked, axis=0)
        np.testing.assert_allclose(view.q.reshape(wanted.shape), wanted, atol=1e-6)
    assert not np.allclose(found.next.q, found.target.q)
    if algorithm == "iqn":
        assert not np.allclose(found.now.taus, found.next.taus)


def test_defaults_with_memory_are_r2d2s() -> None:
    assert (Spec(memory=8).batch_size, Spec(memory=8).n_step) == (8, 5)
    assert (Spec().batch_size, Spec().n_step) == (128, 1)
    assert (Spec(memory=8, batch_size=3, n_step=1).batch_size, Spec(n_step=2).n_step) == (3, 2)


def test_values_are_rescaled_with_memory_unless_said() -> None:
    assert Spec(memory=8).rescale is True
    assert Spec().rescale is False
    assert Spec(memory=8, rescale=False).rescale is False
