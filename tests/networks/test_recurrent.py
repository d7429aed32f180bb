"""The memory: its values, its gradient, and where it is emptied."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve.algorithms import NoOptions
from rbve.networks import Recurrent, build, recurrent
from rbve.networks import network as module
from rbve.networks.recurrent import LSTM, Memory, Seen
from rbve.ranking import Options as RankingOptions
from rbve.types import Tower

STEPS, BATCH, UNITS, ACTIONS = 7, 3, 4, 3


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def reference(lstm: LSTM, x: np.ndarray, first: np.ndarray) -> np.ndarray:
    """(T, F) to (T, H) in float64, one sequence alone."""
    weight, bias, again = (
        np.asarray(a, np.float64) for a in (lstm.inputs.weight, lstm.inputs.bias, lstm.recurrent)
    )
    hidden = cell = np.zeros(again.shape[1])
    result = []
    for row, begins in zip(x, first, strict=True):
        if begins:
            hidden, cell = np.zeros_like(hidden), np.zeros_like(cell)
        into, forget, candidate, out = np.split(weight @ row + bias + again @ hidden, 4)
        cell = sigmoid(forget) * cell + sigmoid(into) * np.tanh(candidate)
        hidden = sigmoid(out) * np.tanh(cell)
        result.append(hidden)
    return np.array(result)


@pytest.fixture
def inputs() -> tuple[LSTM, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    lstm = LSTM(5, UNITS, jax.random.key(0))
    x = rng.normal(size=(5, STEPS, BATCH)).astype(np.float32)
    first = np.zeros((STEPS, BATCH), bool)
    first[0] = [True, False, True]
    first[3, 0] = first[4, 1] = first[5, 1] = True
    return lstm, x, first


def test_values_equal_a_slow_reference_with_episodes_joined_anywhere(inputs) -> None:
    lstm, x, first = inputs
    found, last = lstm(jnp.asarray(x), jnp.asarray(first), Memory.empty(UNITS, BATCH))
    for k in range(BATCH):
        wanted = reference(lstm, x[:, :, k].T, first[:, k])
        np.testing.assert_allclose(found[:, :, k], wanted, atol=1e-6)
    np.testing.assert_array_equal(last.hidden, found[-1])


def test_the_forget_gate_starts_open() -> None:
    bias = LSTM(5, UNITS, jax.random.key(0)).inputs.bias.reshape(4, UNITS)
    np.testing.assert_array_equal(bias, [[0] * 4, [1] * 4, [0] * 4, [0] * 4])


def test_memory_passes_from_one_call_to_the_next(inputs) -> None:
    lstm, x, first = inputs
    whole, last = lstm(jnp.asarray(x), jnp.asarray(first), Memory.empty(UNITS, BATCH))
    early, memory = lstm(jnp.asarray(x[:, :2]), jnp.asarray(first[:2]), Memory.empty(UNITS, BATCH))
    late, end = lstm(jnp.asarray(x[:, 2:]), jnp.asarray(first[2:]), memory)
    np.testing.assert_allclose(np.concatenate([early, late]), whole, atol=1e-6)
    np.testing.assert_allclose(end.cell, last.cell, atol=1e-6)


def test_an_episode_forgets_what_was_not_finite(inputs) -> None:
    lstm, x, first = inputs
    lost = Memory(*(each.at[:, 0].set(jnp.nan) for each in Memory.empty(UNITS, BATCH)))
    found, _ = lstm(jnp.asarray(x), jnp.asarray(first), lost)
    wanted, _ = lstm(jnp.asarray(x), jnp.asarray(first), Memory.empty(UNITS, BATCH))
    np.testing.assert_array_equal(found, wanted)  # an episode of the first begins here


def test_the_written_gradient_is_that_of_a_plain_scan(inputs) -> None:
    lstm, x, first = inputs
    rng = np.random.default_rng(1)
    toward = jnp.asarray(rng.normal(size=(STEPS, UNITS, BATCH)), jnp.float32)
    end = jnp.asarray(rng.normal(size=(UNITS, BATCH)), jnp.float32)
    start = Memory(*(jnp.asarray(rng.normal(size=(UNITS, BATCH)), jnp.float32) for _ in "hc"))

    def plain(again: Any, driven: Any, kept: Any, memory: Memory) -> Any:
        return recurrent.unroll_forward(again, driven, kept, memory)[0]

    def loss(unroll: Any, lstm: LSTM, x: Any, start: Memory) -> Any:
        driven = lstm.inputs(x.reshape(5, -1)).reshape(-1, STEPS, BATCH)
        kept = 1.0 - jnp.asarray(first, jnp.float32)
        hidden, last = unroll(lstm.recurrent, driven, kept, start)
        return jnp.sum(hidden * toward) + jnp.sum(last.cell * end) + jnp.sum(last.hidden * end**2)

    arguments = (lstm, jnp.asarray(x), start)
    mine = jax.grad(lambda *a: loss(recurrent.unroll, *a), (0, 1, 2))(*arguments)
    wanted = jax.grad(lambda *a: loss(plain, *a), (0, 1, 2))(*arguments)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), mine, wanted)
    assert all(float(jnp.abs(leaf).max()) > 1e-3 for leaf in jax.tree.leaves(wanted))


def seen(obs: Any, last_action: Any = None, last_reward: Any = None, first: Any = None) -> Seen:
    shape = obs.shape[:2]
    return Seen(
        jnp.asarray(obs),
        jnp.full(shape, -1) if last_action is None else jnp.asarray(last_action),
        jnp.zeros(shape) if last_reward is None else jnp.asarray(last_reward),
        jnp.zeros(shape, bool) if first is None else jnp.asarray(first),
    )


def network(**more: Any) -> Recurrent:
    wanted = {"obs_shape": (2,), "head": "q", "options": NoOptions(), "hidden": (6,), **more}
    return build(actions=ACTIONS, key=jax.random.key(1), memory=UNITS, **wanted)


def test_the_network_sees_last_action_and_last_reward() -> None:
    net = network()
    obs = np.random.default_rng(2).normal(size=(STEPS, BATCH, 2)).astype(np.float32)

    def q(**more: Any) -> np.ndarray:
        head, _ = net(seen(obs, **more), net.start(BATCH), jax.random.key(0))
        return np.asarray(head.q).reshape(STEPS, BATCH, ACTIONS)

    usual = q()
    action = np.full((STEPS, BATCH), -1)
    action[2, 1] = 0  # action 0 is not the same as no action
    reward = np.zeros((STEPS, BATCH))
    reward[4, 2] = 1.0
    for changed, (step, who) in ((q(last_action=action), (2, 1)), (q(last_reward=reward), (4, 2))):
        differs = np.abs(changed - usual).max(axis=-1) > 1e-7
        wanted = np.zeros_like(differs)
        wanted[step:, who] = True  # from then on, and nobody else
        np.testing.assert_array_equal(differs, wanted)
    # Rewards are squashed: a thousand is hardly more than ten.
    big, bigger = (np.where(reward > 0, size, 0.0) for size in (10.0, 1000.0))
    np.testing.assert_allclose(q(last_reward=big), q(last_reward=bigger), atol=1e-6)


def test_the_head_is_dueling() -> None:
    head = network().head
    x = jnp.asarray(np.random.default_rng(3).normal(size=(UNITS, 5)), jnp.float32)
    hidden = np.maximum(np.asarray(head.hidden(x)), 0)
    value = np.asarray(head.value(jnp.asarray(hidden[:UNITS])))
    advantage = np.asarray(head.advantage(jnp.asarray(hidden[UNITS:])))
    wanted = value + advantage - advantage.mean(axis=0)
    np.testing.assert_allclose(head(x, jax.random.key(0)).q, wanted.T, atol=1e-6)
    bounded = network(options=RankingOptions(bounded=True)).head(x, jax.random.key(0))
    np.testing.assert_allclose(bounded.q, bounded.ranked, atol=1e-6)  # α starts at 1
    assert float(jnp.abs(bounded.ranked).max()) < 1


def test_pictures_in_parts_give_the_same_values_and_gradients(monkeypatch) -> None:
    net = network(obs_shape=(5, 5, 2), torso="board", hidden=(6,))
    obs = np.random.default_rng(4).integers(0, 256, (STEPS, BATCH, 5, 5, 2), np.uint8)

    def run(net: Recurrent) -> Any:
        head, _ = net(seen(obs), net.start(BATCH), jax.random.key(0))
        return jnp.sum(head.q**2)

    def remade() -> bool:
        return "remat" in str(
            jax.make_jaxpr(lambda obs: net.unroll(seen(obs), net.start(BATCH)))(obs)
        )

    whole = eqx.filter_jit(eqx.filter_value_and_grad(run))(net)
    monkeypatch.setattr(module, "FRAMES_AT_ONCE", 4)  # 21 images: the last part is padded
    assert not remade()  # boards are small
    monkeypatch.setattr(module, "LARGE_IMAGE", 49)
    assert remade()
    parts = eqx.filter_jit(eqx.filter_value_and_grad(lambda net: run(net)))(net)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), whole, parts)


def test_atari_features_enter_the_memory_as_they_are() -> None:
    net = network(obs_shape=(72, 96, 3), hidden=())
    # Three convolutions leave 9 × 12 × 64, and no dense layer follows.
    assert net.lstm.inputs.weight.shape == (4 * UNITS, 9 * 12 * 64 + ACTIONS + 1)


@pytest.mark.parametrize("own", [True, False])
def test_a_second_head_behind_the_memory(own: bool) -> None:
    """On a tower of its own it has a memory of its own; the first head is as it is alone."""
    second = Tower("policy") if own else "policy"
    both, alone = network(head=("q", second)), network()
    towers = 2 if own else 1
    assert both.start(BATCH).hidden.shape == (towers * UNITS, BATCH)
    obs = np.random.default_rng(3).normal(size=(STEPS, BATCH, 2)).astype(np.float32)
    first = np.zeros((STEPS, BATCH), bool)
    first[2, 1] = True
    steps, key = seen(obs, first=first), jax.random.key(0)
    said, last = both(steps, both.start(BATCH), key)
    np.testing.assert_array_equal(said.q, alone(steps, alone.start(BATCH), key)[0].q)
    assert said.logits is not None
    # Step by step it says and remembers the same.
    memory = both.start(BATCH)
    for step in range(STEPS):
        head, memory = both(Seen(*(column[step : step + 1] for column in steps)), memory, key)
        here = slice(step * BATCH, (step + 1) * BATCH)
        np.testing.assert_allclose(head.logits, said.logits[here], atol=1e-6)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), memory, last)
    pushed = jax.grad(lambda net: jnp.sum(net(steps, net.start(BATCH), key)[0].logits))(both)
    reached = any((leaf != 0).any() for leaf in jax.tree.leaves((pushed.torso, pushed.lstm)))
    assert reached != own
    assert not any((leaf != 0).any() for leaf in jax.tree.leaves(pushed.head))
    assert any((leaf != 0).any() for leaf in jax.tree.leaves(pushed.further))
