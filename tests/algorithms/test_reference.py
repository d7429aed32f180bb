"""Every loss, item by item in float64 loops, against the fast code: values and gradients."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve import algorithms, ops, ranking
from rbve.types import Batch, Head, Views

ITEMS, ACTIONS, PARTS = 6, 4, 3
KEY = jax.random.key(7)


class Case(NamedTuple):
    """One algorithm with its settings; float64 copies of what the fast code gets."""

    name: str
    td: str
    config: Any
    options: Any
    views: Views
    batch: Batch

    def mixture(self) -> np.ndarray:
        draw = np.asarray(jax.random.uniform(KEY, (PARTS,)), np.float64)
        return draw / draw.sum()


def random_head(rng: np.random.Generator) -> Head:
    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=(ITEMS, *shape)).astype(np.float32)

    return Head(
        q=draw(ACTIONS),
        ranked=draw(ACTIONS),
        parts=2 * draw(PARTS, ACTIONS),
        taus=rng.uniform(size=(ITEMS, PARTS)).astype(np.float32),
        logits=draw(ACTIONS),
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


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def negative_log_likelihood(logits: Any, action: int, among: list[int]) -> float:
    return math.log(sum(math.exp(logits[a]) for a in among)) - logits[action]


def passes(logits: Any, action: int, among: list[int], threshold: float) -> bool:
    likeliest = max(math.exp(logits[b]) for b in among)
    return math.exp(logits[action]) / likeliest > threshold


def bootstrap_action(case: Case, item: int) -> int:
    options, batch = case.options, case.batch
    chooser = case.views.next if options.double else case.views.target
    among = allowed(batch.next_legal, item)
    if case.name == "bcq":
        logits, threshold = chooser.logits[item], case.config.threshold
        among = [a for a in among if passes(logits, a, among, threshold)]
    return best(chooser.q[item], among)


def temporal_difference(case: Case, now: Head, item: int) -> float:
    batch, target = case.batch, case.views.target
    action = batch.action[item]
    if case.name == "mc":
        return penalty(case.td, now.q[item][action] - batch.g[item])
    if case.name == "rem":
        alpha = case.mixture()
        mixed = [sum(alpha[k] * target.parts[item, k, a] for k in range(PARTS)) for a in range(4)]
        value = sum(alpha[k] * now.parts[item, k, action] for k in range(PARTS))
        next_value = mixed[best(mixed, allowed(batch.next_legal, item))]
    else:
        value = now.q[item, action]
        if case.name in ("bve", "rbve"):
            next_value = target.q[item, batch.next_action[item]]
        else:
            next_value = target.q[item, bootstrap_action(case, item)]
    goal = batch.reward[item] + batch.discount[item] * next_value
    return penalty(case.td, value - goal)


def quantile_regression(case: Case, now: Head, item: int) -> float:
    batch, target, kappa = case.batch, case.views.target, case.config.kappa
    choice = best(target.q[item], allowed(batch.next_legal, item))
    total = 0.0
    for i in range(PARTS):
        for j in range(PARTS):
            goal = batch.reward[item] + batch.discount[item] * target.parts[item, j, choice]
            error = goal - now.parts[item, i, batch.action[item]]
            size = abs(error)
            huber = 0.5 * size**2 if size <= kappa else kappa * (size - 0.5 * kappa)
            tau = now.taus[item, i]
            total += (tau if error >= 0 else 1 - tau) * huber / kappa / PARTS
    return total


def disorder(case: Case, now: Head, item: int) -> float:
    action, q = case.batch.action[item], now.ranked[item]
    among = allowed(case.batch.legal, item)
    others = [a for a in among if a != action]
    form = case.options.form
    if form == "hinge2":
        return sum(max(q[i] - q[action] + case.config.nu, 0) ** 2 for i in others)
    if form == "softplus":
        return sum(math.log1p(math.exp(q[i] - q[action])) for i in others)
    wins = {i: math.prod(sigmoid(q[i] - q[j]) for j in among if j != i) for i in among}
    return -math.log(wins[action] / sum(wins.values()))


def success_weight(case: Case, item: int) -> float:
    """From the case's own views: a changed `now` does not change w, which has no gradient."""
    batch, options, config = case.batch, case.options, case.config
    if options.filter == "none":
        return 1.0
    among = allowed(batch.legal, item)
    if options.filter == "advantage":
        baseline = sum(case.views.now.q[item, a] for a in among) / len(among)
    else:
        baseline = sum(batch.g * batch.weight) / sum(batch.weight)
    excess = batch.g[item] - baseline
    if options.filter == "binary":
        return float(excess > 0)
    if options.normalise == "dataset":
        excess /= batch.g_scale
    return min(math.exp(excess / config.beta), config.cap)


def reference(case: Case, now: Head) -> np.ndarray:
    """The loss of every item."""
    losses = np.zeros(ITEMS)
    for item in range(ITEMS):
        action, among = case.batch.action[item], allowed(case.batch.legal, item)
        if case.name in ("bc", "filtered_bc"):
            losses[item] = negative_log_likelihood(now.q[item], action, among)
            continue
        if case.name == "iqn":
            losses[item] = quantile_regression(case, now, item)
            continue
        losses[item] = temporal_difference(case, now, item)
        if case.name in ("rbve", "rdqn"):
            losses[item] += case.config.lam * success_weight(case, item) * disorder(case, now, item)
        elif case.name == "cql":
            losses[item] += case.config.alpha * negative_log_likelihood(now.q[item], action, among)
        elif case.name == "bcq":
            logits = now.logits[item]
            losses[item] += negative_log_likelihood(logits, action, among)
            size = sum(logits[a] ** 2 for a in among) / len(among)
            losses[item] += case.config.logit_penalty * size
    return losses


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


def finite_differences(case: Case, now: Head, step: float = 1e-6) -> Head:
    """Central differences of the summed reference by every entry of the head."""
    result = {}
    for field in ("q", "ranked", "parts", "logits"):
        values = getattr(now, field)
        slope = np.zeros_like(values)
        for index in np.ndindex(*values.shape):
            ends = []
            for sign in (1, -1):
                moved = values.copy()
                moved[index] += sign * step
                ends.append(reference(case, now._replace(**{field: moved})).sum())
            slope[index] = (ends[0] - ends[1]) / (2 * step)
        result[field] = slope
    return now._replace(**result)


def compare(
    name: str, settings: dict[str, Any], masked: bool, td: str = "square", seed: int = 0
) -> None:
    algorithm = algorithms.load(name)
    rng = np.random.default_rng([seed, masked])
    views = Views(random_head(rng), random_head(rng), random_head(rng))
    batch = random_batch(rng, masked, algorithm.bootstrap)
    config = algorithm.config(
        **{k: v for k, v in settings.items() if k in algorithm.config._fields}
    )
    options = algorithm.options(
        **{k: v for k, v in settings.items() if k not in algorithm.config._fields}
    )
    case = Case(name, td, config, options, float64(views), float64(batch))
    losses, gradient = fast(case, views, batch)
    np.testing.assert_allclose(losses, reference(case, case.views.now), rtol=1e-5, atol=1e-5)
    for leaf in jax.tree.leaves((gradient.next, gradient.target)):
        assert (leaf == 0).all()
    expected = finite_differences(case, case.views.now)
    for field in ("q", "ranked", "parts", "logits"):
        got = getattr(gradient.now, field)
        assert np.isfinite(got).all()
        np.testing.assert_allclose(got, getattr(expected, field), rtol=1e-4, atol=1e-5)


CASES: list[tuple[str, dict[str, Any], str]] = [
    ("bve", {}, "square"),
    ("bve", {}, "huber"),
    ("dqn", {}, "square"),
    ("dqn", {"double": False}, "huber"),
    ("rdqn", {"lam": 0.7, "nu": 0.3}, "square"),
    ("rdqn", {"lam": 0.7, "nu": 0.3, "double": False}, "square"),
    ("cql", {"alpha": 0.8}, "square"),
    ("rem", {"heads": PARTS}, "square"),
    ("bcq", {"logit_penalty": 0.2}, "square"),
    ("bcq", {"threshold": 0.6, "double": False}, "huber"),
    ("iqn", {"samples": PARTS}, "square"),
    ("iqn", {"samples": PARTS, "kappa": 0.5}, "square"),
    ("bc", {}, "square"),
    ("filtered_bc", {}, "square"),
    ("mc", {}, "square"),
    ("rbve", {}, "square"),
]


def test_every_algorithm_has_a_reference() -> None:
    assert {name for name, _, _ in CASES} == set(algorithms.names())


@pytest.mark.parametrize("masked", [False, True], ids=["all legal", "masked"])
@pytest.mark.parametrize(("name", "settings", "td"), CASES)
def test_loss_and_gradient(name: str, settings: dict[str, Any], td: str, masked: bool) -> None:
    compare(name, settings, masked, td)


@pytest.mark.parametrize("masked", [False, True], ids=["all legal", "masked"])
@pytest.mark.parametrize("form", ["hinge2", "softplus", "listwise"])
@pytest.mark.parametrize("normalise", ["dataset", "none"])
@pytest.mark.parametrize("filtering", ["exponential", "none", "binary", "advantage"])
def test_ranking(filtering: str, normalise: str, form: str, masked: bool) -> None:
    settings = {"filter": filtering, "normalise": normalise, "form": form}
    compare("rbve", {"lam": 0.7, "nu": 0.3, "cap": 5.0, **settings}, masked)


def test_the_random_cases_reach_the_cap_and_both_sides_of_the_mean() -> None:
    batch = random_batch(np.random.default_rng([0, 0]), False, "pair")
    head = jax.tree.map(jnp.asarray, random_head(np.random.default_rng(0)))
    weight = ranking.success_weight(
        head, batch, ranking.Config(cap=5.0), ranking.Options(normalise="none")
    )
    assert (weight == 5).any()
    assert (weight < 1).any()
