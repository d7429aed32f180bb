"""The unrolled loss against a slow reference that walks every episode step by step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.sequences import ACTIONS, GAMMA, UNITS, N, dataset, decisions, member, program_for

from rbve import ops
from rbve.data.dataset import Dataset
from rbve.data.episode import Episode
from rbve.training.update import make_program


@pytest.fixture(scope="module")
def data() -> Dataset:
    return dataset()


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
    wanted = wanted_loss(name, data, nets, items, bool(spec.network.rescale))
    np.testing.assert_allclose(float(sums["loss"]), wanted, rtol=2e-5)
    assert int(after.step) == 1
    assert float(jnp.abs(after.params - state.params).max()) > 1e-5


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
        alone = make_program(spec.varied(batch_size=len(index)), table.items)
        picked = columns.pick(np.array(index))
        batches = jax.tree.map(lambda column: jnp.asarray(column)[None], picked)
        advance = jax.jit(alone.advance_given)
        after, sums = advance(state, batches, member(alone, config, table), 1)
        return float(sums["loss"]), np.asarray(after.opt[0].mu)

    (one, grad_one), (two, grad_two), (both, grad_both) = (learned(k) for k in ([0], [1], [0, 1]))
    share = lengths[0] / sum(lengths)
    assert both == pytest.approx(share * one + (1 - share) * two, rel=1e-5)
    assert one != pytest.approx(two, rel=1e-2)
    wanted, scale = share * grad_one + (1 - share) * grad_two, np.abs(grad_both).max()
    np.testing.assert_allclose(grad_both, wanted, rtol=0, atol=1e-5 * scale)


def test_rescaling_and_back() -> None:
    x = np.array([-1e4, -300.0, -1.0, -1e-3, 0.0, 1e-3, 0.5, 7.0, 300.0, 1e4])
    found = ops.rescale(jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(found, [h(value) for value in x], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ops.unscale(found), x, rtol=1e-4, atol=1e-6)
    td = ops.TD("square", rescaled=True)
    goal = td.target(jnp.float32(2.0), jnp.float32(0.5), jnp.float32(h(8.0)))
    np.testing.assert_allclose(goal, h(2 + 0.5 * 8), rtol=1e-5)
