"""Every loss, item by item in float64 loops, against the fast code: values and gradients."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.own_files import own_files
from support.reference import (
    ITEMS,
    KEY,
    PARTS,
    Case,
    allowed,
    best,
    compare,
    negative_log_likelihood,
    penalty,
    random_batch,
    random_head,
)

from rbve import algorithms, ranking
from rbve.types import Head


def mixture() -> np.ndarray:
    """REM's α."""
    draw = np.asarray(jax.random.uniform(KEY, (PARTS,)), np.float64)
    return draw / draw.sum()


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


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
        alpha = mixture()
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
    elsewhere = own_files(compare.__name__)
    assert {name for name, _, _ in CASES}.isdisjoint(elsewhere)
    assert {name for name, _, _ in CASES} | elsewhere == set(algorithms.names())


@pytest.mark.parametrize("masked", [False, True], ids=["all legal", "masked"])
@pytest.mark.parametrize(("name", "settings", "td"), CASES)
def test_loss_and_gradient(name: str, settings: dict[str, Any], td: str, masked: bool) -> None:
    compare(reference, name, settings, masked, td)


@pytest.mark.parametrize("masked", [False, True], ids=["all legal", "masked"])
@pytest.mark.parametrize("form", ["hinge2", "softplus", "listwise"])
@pytest.mark.parametrize("normalise", ["dataset", "none"])
@pytest.mark.parametrize("filtering", ["exponential", "none", "binary", "advantage"])
def test_ranking(filtering: str, normalise: str, form: str, masked: bool) -> None:
    settings = {"filter": filtering, "normalise": normalise, "form": form}
    compare(reference, "rbve", {"lam": 0.7, "nu": 0.3, "cap": 5.0, **settings}, masked)


def test_the_random_cases_reach_the_cap_and_both_sides_of_the_mean() -> None:
    batch = random_batch(np.random.default_rng([0, 0]), False, "pair")
    head = jax.tree.map(jnp.asarray, random_head(np.random.default_rng(0)))
    weight = ranking.success_weight(
        head, batch, ranking.Config(cap=5.0), ranking.Options(normalise="none")
    )
    assert (weight == 5).any()
    assert (weight < 1).any()
