"""Sequences: which rows they hold, what a batch of them is, what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.sequences import ACTIONS, GAMMA, UNITS, N, dataset, decisions, program_for

from rbve.data.dataset import Dataset
from rbve.data.transitions import View
from rbve.spec import Spec
from rbve.training.batches import sequences
from rbve.training.batches.steps import remembered, views_of_steps
from rbve.training.batches.table import sequence_table
from rbve.training.update import make_program


@pytest.fixture(scope="module")
def data() -> Dataset:
    return dataset()


def test_rows_in_memory_are_the_rows_picked(data: Dataset) -> None:
    table = np.random.default_rng(1).dirichlet(np.ones(ACTIONS), len(data.action))
    data = dataclasses.replace(data, policy=table.astype(np.float32))  # every column there is
    for plan in ({}, {"sequence": 4, "burn_in": 3}):
        table, _, _, _ = program_for("bve", data, batch=2, **plan)
        index = np.arange(table.count[0])
        picked = table.columns[0].pick(index)
        fetched = table.items.fetch(jax.tree.map(jnp.asarray, table.store), jnp.asarray(index))
        # All rows of the data, those that warm the memory or are bootstrapped from as well.
        first = table.columns[0].items[index, 0][:, None]
        row = first + np.arange(table.items.plan.rows)
        there = (row >= 0) & (row < len(data.action))
        for mine, theirs in zip(fetched, picked, strict=True):
            np.testing.assert_array_equal(np.asarray(mine)[there], theirs[there])


def test_every_decision_is_trained_on_once(data: Dataset) -> None:
    for plan in ({}, {"sequence": 4, "burn_in": 3}, {"sequence": 1}):
        table, _, _, _ = program_for("bve", data, batch=2, **plan)
        columns = table.columns[0]
        rows, _ = columns.rows_of(np.arange(len(columns.items)))
        picked = columns.pick(np.arange(len(columns.items)))
        weight = sequences.NUMBERS.column(picked.numbers, "weight")
        counts = np.bincount(rows[weight > 0], minlength=len(data.action))
        wanted = [row in decisions(data, pair=True) for row in range(len(data.action))]
        np.testing.assert_array_equal(counts, np.array(wanted, int))


def test_whole_episodes_share_a_sequence_where_they_fit() -> None:
    offsets = np.array([0, 7, 10, 15, 17, 25])
    found = sequences.packs(offsets, longest=8)
    np.testing.assert_array_equal(found, [[0, 0, 7], [7, 7, 15], [15, 15, 17], [17, 17, 25]])


def test_no_gradient_reaches_the_steps_that_warm_the_memory(data: Dataset) -> None:
    """A change of a warming observation moves the loss, and the gradient is as if it were given."""
    table, program, _, _ = program_for("bve", data, batch=2, sequence=4, burn_in=3)
    picked = jax.tree.map(jnp.asarray, table.columns[0].pick(np.array([1, 2])))
    given, _ = table.items._steps(picked)
    network = program.unravel(program.init(jax.random.key(0)).params)

    @jax.jit
    def total(obs: Any) -> Any:
        return jnp.sum(remembered(network, given.seen._replace(obs=obs), 3) ** 2)

    grad = np.asarray(jax.jit(jax.grad(total))(given.seen.obs))
    assert not grad[:3].any()
    assert grad[3:].any()
    moved = given.seen.obs.at[2].add(1.0)
    assert float(total(moved)) != float(total(given.seen.obs))


def test_fragments_have_no_memory(data: Dataset) -> None:
    fragment = dataclasses.replace(data, complete=np.zeros(data.num_episodes, bool))
    with pytest.raises(ValueError, match="train without memory"):
        sequence_table([fragment], View(GAMMA), "pair", 0, 0)


@pytest.mark.parametrize(("sequence", "burn_in"), [(26, 0), (4, 26)])
def test_windows_larger_than_all_the_data(data: Dataset, sequence: int, burn_in: int) -> None:
    with pytest.raises(ValueError, match=f"windows of {sequence} .* the data, 25 rows in all"):
        sequence_table([data], View(GAMMA), "pair", sequence, burn_in)
    assert sequence_table([data], View(GAMMA), "pair", 25, 25).count.tolist() == [1]


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
        Spec.of(**plan)


@pytest.mark.parametrize("algorithm", ["dqn", "bc", "rem", "iqn"])
def test_heads_are_those_of_the_steps(data: Dataset, algorithm: str) -> None:
    """Said once and looked up, or where they are drawn, said again of the steps looked up."""
    own: dict[str, Any] = {"heads": 3} if algorithm == "rem" else {}
    own |= {"memory": UNITS, "hidden": (5,), "batch_size": 4, "n_step": N}
    spec = Spec.of(algorithm=algorithm, **own).resolved()
    table = sequence_table([data], spec.view, spec.load_algorithm().bootstrap, 0, 0, True)
    program = make_program(spec, table.items)
    nets = [program.unravel(program.init(jax.random.key(k)).params) for k in (0, 1)]
    rows = jax.tree.map(jnp.asarray, table.store)
    picked = table.items.fetch(rows, jnp.arange(4))
    inputs, _ = table.items._steps(picked)
    keys = list(jax.random.split(jax.random.key(2), 3))
    found = jax.jit(views_of_steps, static_argnums=3)(*nets, inputs, 0, keys)
    steps, batch = inputs.later.shape
    every = np.arange(steps)[:, None], inputs.later, inputs.later
    every = (*every, every[0])
    views = (*found[:3], found.target_now)
    for view, net, step in zip(views, (nets[0], *nets, nets[1]), every, strict=True):
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


def sizes(**fields: int) -> tuple[int, int]:
    spec = Spec.of(**fields).resolved()
    return spec.sampling.batch_size, spec.view.n_step


def test_defaults_with_memory_are_r2d2s() -> None:
    assert sizes(memory=8) == (8, 5)
    assert sizes() == (128, 1)
    assert sizes(memory=8, batch_size=3, n_step=1) == (3, 1)
    assert sizes(n_step=2) == (128, 2)


def test_values_are_rescaled_with_memory_unless_said() -> None:
    assert Spec.of(memory=8).resolved().network.rescale is True
    assert Spec().resolved().network.rescale is False
    assert Spec.of(memory=8, rescale=False).resolved().network.rescale is False
