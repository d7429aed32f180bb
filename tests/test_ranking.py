"""The ranking's weight at its limits, and its metrics."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import ops, ranking
from rbve.types import Batch, Head


def batch(g: Any, scale: float = 1.0, weight: Any = None) -> Batch:
    g = jnp.array(g, jnp.float32)
    zeros, first = jnp.zeros_like(g), jnp.zeros(g.shape, jnp.int32)
    valid = jnp.ones_like(g) if weight is None else jnp.array(weight, jnp.float32)
    return Batch(first, zeros, zeros, first, zeros > 0, g, jnp.float32(scale), valid)


def head(count: int, q: float = 0.0) -> Head:
    values = jnp.full((count, 3), q)
    return Head(values, values)


def weights(batch: Batch, q: float = 0.0, config: Any = None, **options: Any) -> jax.Array:
    chosen = ranking.Options(**options)
    said = jnp.full((len(batch.g), 3), q)
    return ranking.success_weight(said, batch, config or ranking.Config(), chosen)


@pytest.mark.parametrize("normalise", ["dataset", "none"])
@pytest.mark.parametrize("name", ["exponential", "advantage"])
def test_weight_of_huge_returns_is_the_cap(name: str, normalise: str) -> None:
    far = batch([1e4, -1e4])
    np.testing.assert_array_equal(weights(far, filter=name, normalise=normalise), [20, 0])

    def total(q: jax.Array) -> jax.Array:
        options = ranking.Options(filter=name, normalise=normalise)
        return jnp.sum(ranking.penalty(Head(q, q), far, ranking.Config(), options)[0])

    assert jnp.isfinite(jax.grad(total)(jnp.ones((2, 3)))).all()


def test_cap_and_clipped_share() -> None:
    # Mean 0: exponents 4, 2, −6; e⁴ > 20 > e².
    _, metrics = ranking.penalty(head(3), batch([2, 1, -3]), ranking.Config(), ranking.Options())
    np.testing.assert_array_equal(metrics["weight_clipped"], [1, 0, 0])
    np.testing.assert_allclose(weights(batch([2, 1, -3])), [20, np.e**2, np.e**-6], rtol=1e-6)


def test_clipped_share_counts_at_any_cap() -> None:
    """exp(log cap) may fall short of the cap by rounding."""

    def clipped(cap: jax.Array) -> jax.Array:
        config = ranking.Config(cap=cap)  # type: ignore[arg-type]
        _, metrics = ranking.penalty(head(2), batch([50, -50]), config, ranking.Options())
        return jnp.append(metrics["weight_clipped"], weights(batch([50, -50]), config=config)[0])

    caps = jnp.linspace(1.5, 200, 500)
    got = jax.jit(jax.vmap(clipped))(caps)
    np.testing.assert_array_equal(got, jnp.stack([caps * 0 + 1, caps * 0, caps], axis=1))


def test_weight_divides_by_the_deviation_and_the_temperature() -> None:
    # (3 − 2) / 4 / ½ = ½
    np.testing.assert_allclose(weights(batch([3, 1], 4.0)), np.exp([0.5, -0.5]), rtol=1e-6)
    raw = weights(batch([3, 1], 4.0), normalise="none")
    np.testing.assert_allclose(raw, np.exp([2, -2]), rtol=1e-6)
    warm = weights(batch([3, 1], 4.0), config=ranking.Config(beta=0.25))
    np.testing.assert_allclose(warm, np.exp([1, -1]), rtol=1e-6)


def test_zero_deviation_gives_weights_of_one() -> None:
    np.testing.assert_array_equal(weights(batch([3, 3, 3], 0.0)), [1, 1, 1])


def test_padding_does_not_enter_the_mean_nor_the_effective_share() -> None:
    padded = batch([3, 1, 1e6], weight=[1, 1, 0])
    np.testing.assert_allclose(weights(padded)[:2], np.exp([2, -2]), rtol=1e-6)
    alone = ranking.effective_share(weights(batch([3, 1])), jnp.ones(2))
    share = ranking.effective_share(weights(padded), padded.weight)
    np.testing.assert_allclose(share, alone, rtol=1e-6)


def test_effective_share() -> None:
    ones = jnp.ones(4)
    assert float(ranking.effective_share(jnp.full(4, 7.0), ones)) == 1
    assert float(ranking.effective_share(jnp.array([5.0, 0, 0, 0]), ones)) == 0.25
    # (3 + 1)² / (2 · 10)
    assert float(ranking.effective_share(jnp.array([3.0, 1.0]), ones[:2])) == pytest.approx(0.8)
    assert float(ranking.effective_share(jnp.zeros(4), ones)) == 0


def test_binary_weight_is_strict() -> None:
    np.testing.assert_array_equal(weights(batch([1, 2, 3]), filter="binary"), [0, 0, 1])


def test_weight_carries_no_gradient() -> None:
    def total(q: jax.Array) -> jax.Array:
        options = ranking.Options(filter="advantage")
        return jnp.sum(ranking.success_weight(q, batch([1, 2]), ranking.Config(), options))

    assert total(jnp.zeros((2, 3))) != total(jnp.ones((2, 3)))
    np.testing.assert_array_equal(jax.grad(total)(jnp.ones((2, 3))), jnp.zeros((2, 3)))


def test_advantage_is_in_the_units_of_returns() -> None:
    """Q is 24 where the network says h(24), so a return of 24 is no better than expected."""
    options, td = ranking.Options(filter="advantage"), ops.TD(rescaled=True)
    said = ops.rescale(jnp.array([[24.0, 24.0], [4.0, 4.0]]))

    def clipped(td: ops.TD) -> list[float]:
        found = ranking.penalty(Head(said, said), batch([24, 24]), ranking.Config(), options, td)
        return found[1]["weight_clipped"].tolist()

    assert clipped(td) == [0, 1]
    assert clipped(ops.TD()) == [1, 1]


def test_penalty_is_proportional_to_lambda() -> None:
    one, two = (
        ranking.penalty(head(2), batch([3, 1]), ranking.Config(lam=lam), ranking.Options())[0]
        for lam in (1.0, 2.0)
    )
    # Two other actions at the margin: 2 · .05² · e^±2
    np.testing.assert_allclose(one, 0.005 * np.exp([2, -2]), rtol=1e-5)
    np.testing.assert_allclose(two, 2 * one, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filter": "exp"}, "unknown filter 'exp'"),
        ({"normalise": "batch"}, "unknown normalise 'batch'"),
        ({"form": "hinge"}, "unknown ranking form 'hinge'"),
    ],
)
def test_unknown_choices_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ranking.penalty(head(2), batch([3, 1]), ranking.Config(), ranking.Options(**options))
