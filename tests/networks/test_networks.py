"""Shapes, initial weights and what each head promises about its values."""

from __future__ import annotations

import functools
from dataclasses import dataclass, make_dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from rbve.networks import Network, build, flattened
from rbve.networks.heads.q import Q
from rbve.networks.heads.quantile import Quantile
from rbve.networks.layers import MLP, Linear
from rbve.types import Head, Tower

KEY = jax.random.key(0)
Q_POLICY = ("q", Tower("policy"))
BATCH, SHAPE, ACTIONS, HIDDEN = 5, (3, 2), 4, (16, 8)
OBS = jax.random.normal(jax.random.key(1), (BATCH, *SHAPE))


@dataclass(frozen=True)
class Choices:
    heads: int = 7
    samples: int = 6
    act_samples: int = 9
    cosines: int = 10


CHOICES = Choices()


@functools.cache
def network(head: Any, seed: int = 0, options: Any = CHOICES) -> Network:
    return build(SHAPE, ACTIONS, head, options, HIDDEN, jax.random.key(seed))


@jax.jit
def say(module: Any, x: jax.Array, key: jax.Array) -> Head:
    return module(x, key)


@pytest.mark.parametrize("head", ["q", Q_POLICY, "ensemble", "quantile"])
def test_a_vector_of_weights_is_a_network_again(head: Any) -> None:
    keys = []

    def new(key: jax.Array) -> Network:
        keys.append(key)
        return build(SHAPE, ACTIONS, head, CHOICES, HIDDEN, key)

    size, unravel = flattened(new)
    assert [isinstance(key, jax.core.Tracer) for key in keys] == [True]  # no weight was drawn
    vector = ravel_pytree(network(head))[0]
    assert vector.shape == (size,)
    assert eqx.tree_equal(unravel(vector), network(head))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("q", {"q": (5, 4), "ranked": (5, 4)}),
        ("policy", {"q": (5, 4), "ranked": (5, 4), "logits": (5, 4)}),
        (Q_POLICY, {"q": (5, 4), "ranked": (5, 4), "logits": (5, 4)}),
        ("ensemble", {"q": (5, 4), "ranked": (5, 4), "parts": (5, 7, 4)}),
        ("quantile", {"q": (5, 4), "ranked": (5, 4), "parts": (5, 6, 4), "taus": (5, 6)}),
    ],
)
def test_head_shapes(head: Any, expected: dict[str, tuple[int, ...]]) -> None:
    said = say(network(head), OBS, KEY)._replace(mix=None)._asdict()
    assert {k: v.shape for k, v in said.items() if v is not None} == expected
    assert all(jnp.isfinite(v).all() for v in said.values() if v is not None)


@pytest.mark.parametrize("head", ["q", "policy", Q_POLICY, "ensemble"])
def test_batched_equals_one_by_one(head: Any) -> None:
    net = network(head)
    together = say(net, OBS, KEY)
    for i in range(BATCH):
        alone = say(net, OBS[i : i + 1], KEY)._replace(mix=None)
        for name, value in alone._asdict().items():
            if value is not None:
                np.testing.assert_allclose(
                    value[0], getattr(together, name)[i], rtol=1e-5, atol=1e-6
                )


def test_unknown_head_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown head 'v'"):
        network("v")


def test_q_network_against_loops() -> None:
    net = network("q")
    x = np.asarray(OBS, np.float64).reshape(BATCH, -1)
    for layer in net.torso.layers:
        x = np.maximum(x @ np.asarray(layer.weight, np.float64).T + np.asarray(layer.bias), 0)
    assert isinstance(net.head, Q)
    expected = x @ np.asarray(net.head.out.weight, np.float64).T + np.asarray(net.head.out.bias)
    np.testing.assert_allclose(say(net, OBS, KEY).q, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("inputs", "outputs"), [(400, 300), (50, 2000), (2000, 50)])
def test_initial_weights_deviate_by_the_root_of_the_inputs(inputs: int, outputs: int) -> None:
    layer = Linear(inputs, outputs, KEY)
    assert layer.weight.shape == (outputs, inputs)
    unit = np.asarray(layer.weight) * np.sqrt(inputs)
    assert abs(unit.std() - 1) < 0.01
    assert abs(unit.mean()) < 0.02
    assert np.abs(unit).max() < 2.28  # two deviations before the truncation
    np.testing.assert_array_equal(layer.bias, np.zeros(outputs))


@pytest.mark.parametrize("head", ["q", "policy", Q_POLICY, "ensemble", "quantile"])
def test_every_weight_matrix_depends_on_the_key(head: Any) -> None:
    one, two = (jax.tree.leaves(network(head, seed)) for seed in (0, 1))
    pairs = [(a, b) for a, b in zip(one, two, strict=True) if a.ndim > 1]
    assert len(pairs) >= 3
    assert all((a != b).all() for a, b in pairs)


@pytest.mark.parametrize("head", ["q", Q_POLICY, "quantile"])
def test_no_two_weight_matrices_start_alike(head: Any) -> None:
    first = [leaf[0, :2].tolist() for leaf in jax.tree.leaves(network(head)) if leaf.ndim > 1]
    scaled = {round(row[0] / row[1], 5) for row in first}
    assert len(scaled) == len(first)


def test_ensemble_value_is_the_mean_over_heads_of_one_torso() -> None:
    said = say(network("ensemble"), OBS, KEY)
    assert said.parts is not None
    np.testing.assert_allclose(said.q, said.parts.mean(axis=1), rtol=1e-5, atol=1e-6)
    assert len(np.unique(said.parts[0, :, 0])) == 7


def test_a_mixture_of_heads_is_that_of_their_values() -> None:
    net = network("ensemble")
    alpha = jnp.array([0.1, 0.3, 0.05, 0.25, 0.1, 0.15, 0.05])

    def by_weights(net: Any) -> jax.Array:
        mix = net(OBS, KEY).mix
        return mix(alpha)

    def by_values(net: Any) -> jax.Array:
        return jnp.einsum("k,bka->ba", alpha, net(OBS, KEY).parts)

    np.testing.assert_allclose(by_weights(net), by_values(net), rtol=1e-5, atol=1e-6)
    slopes = [
        jax.tree.leaves(jax.jit(jax.grad(lambda n, of=of: jnp.sum(jnp.sin(of(n)))))(net))
        for of in (by_weights, by_values)
    ]
    for ours, theirs in zip(*slopes, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_behaviour_has_a_tower_of_its_own() -> None:
    net = network(Q_POLICY)
    pushed = jax.jit(jax.grad(lambda n: jnp.sum(n(OBS, KEY).logits)))(net)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves((pushed.torso, pushed.head)))
    assert any((leaf != 0).any() for leaf in jax.tree.leaves(pushed.further))


def test_bounded_value_is_a_scaled_bounded_ranking() -> None:
    options = make_dataclass("Options", [("bounded", bool, True)], frozen=True)()
    net = network("q", options=options)
    assert isinstance(net.head, Q)
    assert net.head.log_alpha is not None
    said = say(net, 100 * OBS, KEY)
    assert jnp.abs(said.ranked).max() <= 1
    np.testing.assert_array_equal(said.q, said.ranked)  # α starts at 1
    scale = jnp.log(jnp.array([3.0]))
    tripled = eqx.tree_at(lambda q: q.log_alpha, Q(HIDDEN[-1], ACTIONS, KEY, bounded=True), scale)
    said = say(tripled, jax.random.normal(KEY, (HIDDEN[-1], BATCH)), KEY)
    np.testing.assert_allclose(said.q, 3 * said.ranked, rtol=1e-6)
    assert jnp.abs(said.q).max() > 1


def test_unbounded_value_is_its_own_ranking() -> None:
    said = say(network("q"), OBS, KEY)
    np.testing.assert_array_equal(said.q, said.ranked)


@functools.cache
def quantile(**choices: int) -> Quantile:
    return Quantile(HIDDEN[-1], ACTIONS, KEY, **choices)


FEATURES = jax.nn.relu(jax.random.normal(jax.random.key(2), (HIDDEN[-1], BATCH)))


def test_quantile_parts_belong_to_their_levels() -> None:
    head = quantile(samples=6, act_samples=9, cosines=10)
    said = say(head, FEATURES, KEY)
    assert said.parts is not None
    assert said.taus is not None
    assert len(np.unique(said.taus)) == BATCH * 6  # every state has its own levels
    assert ((said.taus >= 0) & (said.taus < 1)).all()
    np.testing.assert_allclose(said.parts, head.at(FEATURES, said.taus.T), rtol=1e-5, atol=1e-6)
    moved = head.at(FEATURES, 1 - said.taus.T)
    assert jnp.abs(said.parts - moved).max() > 1e-3


def test_quantile_value_uses_samples_of_its_own() -> None:
    said = say(quantile(samples=6, act_samples=6), FEATURES, KEY)
    assert said.parts is not None
    assert jnp.abs(said.q - said.parts.mean(axis=1)).max() > 1e-3
    many = say(quantile(samples=4096, act_samples=4096), FEATURES, KEY)
    assert many.parts is not None
    np.testing.assert_allclose(many.q, many.parts.mean(axis=1), atol=0.05)
    assert jnp.abs(many.q - many.parts.mean(axis=1)).max() > 0


def test_quantile_levels_are_embedded_by_cosines_from_one() -> None:
    head = quantile(cosines=3)
    weight, bias = np.asarray(head.embed.weight, np.float64), np.asarray(head.embed.bias)
    out, shift = np.asarray(head.out.weight, np.float64), np.asarray(head.out.bias)
    taus = np.array([[0.0, 0.3], [0.5, 1.0]])  # two levels for each of two states
    got = head.at(FEATURES[:, :2], jnp.array(taus, jnp.float32))
    for level in range(2):
        for state in range(2):
            waves = [np.cos(np.pi * i * taus[level, state]) for i in (1, 2, 3)]
            mixed = np.asarray(FEATURES)[:, state] * np.maximum(weight @ waves + bias, 0)
            np.testing.assert_allclose(got[state, level], out @ mixed + shift, rtol=1e-5, atol=1e-6)


def test_levels_change_with_the_key() -> None:
    head = quantile(samples=6)
    assert (
        say(head, FEATURES, jax.random.key(0)).taus != say(head, FEATURES, jax.random.key(1)).taus
    ).all()


def test_options_without_a_matching_name_keep_the_heads_default() -> None:
    options = make_dataclass("Options", [("double", bool, True)], frozen=True)()
    said = say(network("ensemble", options=options), OBS, KEY)
    assert said.parts is not None
    assert said.parts.shape == (BATCH, 200, ACTIONS)


def test_mlp_has_a_relu_after_every_layer() -> None:
    features = MLP(6, HIDDEN, KEY)(OBS.reshape(BATCH, -1).T)
    assert features.shape == (HIDDEN[-1], BATCH)
    assert features.min() == 0
    assert features.max() > 0
