"""Losses item by item in float64 loops against the fast code: values and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from rbve import algorithms, ops
from rbve.types import Batch, Head, Views

ITEMS, ACTIONS, PARTS = 6, 4, 3
KEY = jax.random.key(7)


Reference = Callable[[Any, Head], np.ndarray]  # (case, now) -> the loss of every item


class Case(NamedTuple):
    """One algorithm with its settings; float64 copies of what the fast code gets."""

    name: str
    td: str
    config: Any
    options: Any
    views: Views
    batch: Batch
    reference: Reference


def random_head(rng: np.random.Generator) -> Head:
    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=(ITEMS, *shape)).astype(np.float32)

    return Head(
        q=draw(ACTIONS),
        ranked=draw(ACTIONS),
        parts=2 * draw(PARTS, ACTIONS),
        taus=rng.uniform(size=(ITEMS, PARTS)).astype(np.float32),
        logits=draw(ACTIONS),
        # A stream of its own, so that the others are the same with and without it.
        extra={"v": rng.spawn(1)[0].normal(size=ITEMS).astype(np.float32)},
    )


def random_batch(rng: np.random.Generator, masked: bool, bootstrap: str) -> Batch:
    """Rows 1 and 4 terminate; row 2 is cut off where an algorithm may bootstrap from a state."""
    action = rng.integers(0, ACTIONS, ITEMS)
    has_next = np.ones(ITEMS, bool)
    has_next[[1, 4] if bootstrap == "pair" else [1, 2, 4]] = False
    discount = np.full(ITEMS, 0.9, np.float32)
    discount[[1, 4]] = 0
    legal = rng.random((ITEMS, ACTIONS)) < 0.6
    legal[np.arange(ITEMS), action] = True
    next_action = np.where(has_next, rng.integers(0, ACTIONS, ITEMS), 0)
    next_legal = rng.random((ITEMS, ACTIONS)) < 0.6
    next_legal[np.arange(ITEMS), next_action] = True
    next_legal[4] = False  # nothing is left to do after the end
    weight = np.ones(ITEMS, np.float32)
    weight[5] = 0
    return Batch(
        action=action.astype(np.int32),
        reward=rng.normal(size=ITEMS).astype(np.float32),
        discount=discount,
        next_action=next_action.astype(np.int32),
        has_next_action=has_next,
        g=rng.normal(1, 2, ITEMS).astype(np.float32),
        g_scale=np.float32(2),
        weight=weight,
        legal=legal if masked else None,
        next_legal=next_legal if masked else None,
    )


def allowed(mask: np.ndarray | None, item: int) -> list[int]:
    return [a for a in range(ACTIONS) if mask is None or mask[item, a]]


def best(values: Any, among: list[int]) -> int:
    """The first of the largest; 0 where nothing is left, whose value the discount then removes."""
    return max(among, key=lambda a: values[a], default=0)


def penalty(form: str, error: float) -> float:
    if form == "square":
        return error**2
    return 0.5 * error**2 if abs(error) <= 1 else abs(error) - 0.5


def negative_log_likelihood(logits: Any, action: int, among: list[int]) -> float:
    return math.log(sum(math.exp(logits[a]) for a in among)) - logits[action]


def float64(tree: Any) -> Any:
    return jax.tree.map(
        lambda x: x.astype(np.float64) if np.issubdtype(x.dtype, np.floating) else x, tree
    )


def fast(case: Case, views: Views, batch: Batch) -> tuple[np.ndarray, Views]:
    """Losses, and the gradient of their sum by every head."""
    algorithm = algorithms.load(case.name)

    @jax.jit
    def run(views: Views, batch: Batch, config: Any) -> tuple[Any, jax.Array]:
        def total(views: Views) -> tuple[jax.Array, jax.Array]:
            loss, _ = algorithm.loss(views, batch, config, case.options, ops.TD(case.td), KEY)
            return jnp.sum(loss), loss

        return jax.grad(total, has_aux=True)(views)

    gradient, losses = run(views, batch, case.config)
    return np.asarray(losses), jax.tree.map(np.asarray, gradient)


def moved(now: Head, field: str, index: tuple[int, ...], step: float) -> Head:
    """The head with one entry changed; v stands in `extra`."""
    values = entries(now, field).copy()
    values[index] += step
    return now._replace(**({"extra": {"v": values}} if field == "v" else {field: values}))


def entries(head: Head, field: str) -> Any:
    assert head.extra is not None
    return head.extra["v"] if field == "v" else getattr(head, field)


def finite_differences(case: Case, now: Head, field: str, step: float = 1e-6) -> np.ndarray:
    """Central differences of the summed reference by every entry of a field of the head."""
    slope = np.zeros_like(entries(now, field))
    for index in np.ndindex(*slope.shape):
        up, down = (
            case.reference(case, moved(now, field, index, sign * step)).sum() for sign in (1, -1)
        )
        slope[index] = (up - down) / (2 * step)
    return slope


def compare(
    reference: Reference,
    name: str,
    settings: dict[str, Any],
    masked: bool,
    td: str = "square",
    seed: int = 0,
) -> None:
    """Losses and gradients of the algorithm against those of the slow reference."""
    algorithm = algorithms.load(name)
    rng = np.random.default_rng([seed, masked])
    views = Views(random_head(rng), random_head(rng), random_head(rng))
    batch = random_batch(rng, masked, algorithm.bootstrap)
    views = views._replace(target_at_s=Partial(_as_it_is, random_head(rng)))
    config = algorithm.config(
        **{k: v for k, v in settings.items() if k in algorithm.config._fields}
    )
    options = algorithm.options(
        **{k: v for k, v in settings.items() if k not in algorithm.config._fields}
    )
    case = Case(name, td, config, options, float64(views), float64(batch), reference)
    losses, gradient = fast(case, views, batch)
    np.testing.assert_allclose(losses, reference(case, case.views.now), rtol=1e-5, atol=1e-5)
    for leaf in jax.tree.leaves((gradient.next, gradient.target)):
        assert (leaf == 0).all()
    for field in ("q", "ranked", "parts", "logits", "v"):
        got, expected = (
            entries(gradient.now, field),
            finite_differences(case, case.views.now, field),
        )
        assert np.isfinite(got).all()
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def _as_it_is(head: Head) -> Head:
    return head
