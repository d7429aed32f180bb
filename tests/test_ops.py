"""Array maths against plain Python."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import ops

RNG = np.random.default_rng(0)


def test_scale_to_range_equals_integer_arithmetic() -> None:
    edges = [0, 1, 2, 0xFFFE, 0xFFFF, 0x10000, 0x10001, 0x7FFFFFFF, 0x80000000]
    bits = [*edges, 0xFFFF0000, 0xFFFFFFFE, 0xFFFFFFFF, *RNG.integers(0, 2**32, 200).tolist()]
    counts = [1, 2, 3, 10, 0xFFFF, 0x10000, 0x10001, 0x7FFFFFFE, 0x7FFFFFFF]
    counts += (2 ** RNG.uniform(0, 31, 60)).astype(int).tolist()
    pairs = list(itertools.product(bits, counts))
    expected = [b * c >> 32 for b, c in pairs]
    got = jax.jit(ops.scale_to_range)(
        jnp.array([b for b, _ in pairs], jnp.uint32), jnp.array([c for _, c in pairs], jnp.int32)
    )
    assert got.dtype == jnp.int32
    np.testing.assert_array_equal(got, expected)


def test_scale_to_range_reaches_every_index_alike() -> None:
    index = ops.scale_to_range(jax.random.bits(jax.random.key(0), (70_000,)), jnp.int32(7))
    counts = np.bincount(index, minlength=7)
    assert len(counts) == 7
    # Deviation of each count: √(70000 · 1/7 · 6/7) ≈ 93.
    assert np.abs(counts - 10_000).max() < 450


def test_select_equals_indexing() -> None:
    values = jnp.array(RNG.normal(size=(3, 5, 4)), jnp.float32)
    index = jnp.array(RNG.integers(0, 4, (3, 5)))
    expected = np.take_along_axis(np.asarray(values), np.asarray(index)[..., None], -1)[..., 0]
    np.testing.assert_array_equal(ops.select(values, index), expected)


def test_select_ignores_what_it_does_not_select() -> None:
    values = jnp.array([[1.0, jnp.inf, jnp.nan]])
    value, gradient = jax.value_and_grad(lambda v: ops.select(v, jnp.array([0]))[0])(values)
    assert value == 1
    np.testing.assert_array_equal(gradient, [[1, 0, 0]])


def test_one_hot() -> None:
    expected = [[False, False, True], [True, False, False]]
    np.testing.assert_array_equal(ops.one_hot(jnp.array([2, 0]), 3), expected)


def test_mask_pushes_illegal_actions_out_of_the_maximum() -> None:
    q = jnp.array([[-1e6, 5.0, 1e20]])
    legal = jnp.array([[True, False, False]])
    assert ops.mask(q, None) is q
    assert int(jnp.argmax(ops.mask(q, legal))) == 0
    assert jnp.isfinite(ops.mask(q, legal)).all()
    assert float(0.0 * jnp.max(ops.mask(q, jnp.zeros((1, 3), bool)))) == 0


def test_huber_by_hand() -> None:
    errors = jnp.array([-3.0, -1.0, -0.5, 0.0, 1.0, 2.0])
    np.testing.assert_allclose(ops.huber(errors), [2.5, 0.5, 0.125, 0, 0.5, 1.5])
    np.testing.assert_allclose(ops.huber(errors, 2.0), [4, 0.5, 0.125, 0, 0.5, 2])


def test_quantile_huber_by_hand() -> None:
    errors = jnp.array([-2.0, -0.5, 0.0, 0.5, 2.0])
    # 1 − τ below, τ above; Huber 1.5, .125, 0, .125, 1.5
    expected = [1.2, 0.1, 0, 0.025, 0.3]
    np.testing.assert_allclose(ops.quantile_huber(errors, 0.2), expected, rtol=1e-6)
    # Huber at κ = ½: .5·(2 − .25) = .875 and ½·.25 = .125, over κ
    halved = ops.quantile_huber(errors, 0.2, 0.5)
    np.testing.assert_allclose(halved, [1.4, 0.2, 0, 0.05, 0.35], rtol=1e-6)


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.8])
def test_quantile_huber_is_least_at_the_quantile(tau: float) -> None:
    sample = np.linspace(0, 1, 1001)
    guesses = np.linspace(0, 1, 101)
    losses = ops.quantile_huber(jnp.array(sample[None] - guesses[:, None]), tau, 1e-3).mean(axis=1)
    assert abs(guesses[int(np.argmin(losses))] - tau) < 0.011


def test_action_gap() -> None:
    q = jnp.array([[1.0, 4.0, 2.5], [3.0, 3.0, 0.0]])
    np.testing.assert_allclose(ops.action_gap(q), [1.5, 0])
    legal = jnp.array([[True, False, True], [False, True, False]])
    np.testing.assert_allclose(ops.action_gap(q, legal), [1.5, 0])
    np.testing.assert_allclose(ops.action_gap(q[:, :1]), [0, 0])


def test_td_is_square_by_default_and_stops_the_gradient_at_its_target() -> None:
    def total(value: float, next_value: float) -> jax.Array:
        return ops.TD()(jnp.float32(value), 1.0, 0.5, jnp.float32(next_value))

    value, gradients = jax.value_and_grad(total, (0, 1))(4.0, 2.0)
    assert value == 4  # (4 − (1 + .5·2))²
    assert gradients == (4, 0)
    assert float(ops.TD("huber")(jnp.float32(4), 1.0, 0.5, jnp.float32(2))) == 1.5


def test_td_of_unknown_form_is_refused() -> None:
    with pytest.raises(ValueError, match="'square' or 'huber'; got 'cube'"):
        ops.TD("cube")  # type: ignore[arg-type]


def test_cos_pi() -> None:
    x = np.concatenate([np.linspace(-3, 3, 241), np.linspace(0, 64, 999), [0.5, 1.5, -0.5, 2.5]])
    got = ops.cos_pi(jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(
        got, np.cos(np.pi * x.astype(np.float32).astype(np.float64)), atol=3e-6
    )
    assert np.asarray(ops.cos_pi(jnp.array([0.0, 1.0, 2.0, 63.0, -1.0]))).tolist() == [
        1.0,
        -1.0,
        1.0,
        -1.0,
        -1.0,
    ]
