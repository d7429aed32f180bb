"""The probabilities of a policy that is evaluated reach the loss at the bootstrap state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.sequences import ACTIONS, GAMMA, N, dataset, decisions

from rbve.data.dataset import Dataset
from rbve.data.transitions import View
from rbve.training.batches import sequences, transitions
from rbve.training.batches.table import Table, sequence_table, transition_table


def evaluated() -> Dataset:
    """Every row has probabilities of its own, to be known by them."""
    data = dataset()
    table = np.random.default_rng(1).dirichlet(np.ones(ACTIONS), len(data.action))
    return replace(data, policy=table.astype(np.float32))


DATA = evaluated()


def picked(table: Table, in_memory: bool) -> Any:
    """All items, from the device or as they are read from disk."""
    index = np.arange(table.count[0])
    if in_memory:
        return table.items.fetch(jax.tree.map(jnp.asarray, table.store), jnp.asarray(index))
    assert table.store is None
    return jax.tree.map(jnp.asarray, table.columns[0].pick(index))


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("stack", [1, 3])
@pytest.mark.parametrize("n_step", [1, N])
def test_of_transitions(in_memory: bool, stack: int, n_step: int) -> None:
    assert DATA.policy is not None
    table = transition_table([DATA], View(GAMMA, n_step), "state", stack, in_memory)
    items = picked(table, in_memory)
    batch = table.items.batch(items, jnp.float32(1))
    assert batch.next_policy is not None
    numbers = table.columns[0].numbers
    next_row = transitions.NUMBERS.column(numbers, "next_row").astype(np.int64)
    np.testing.assert_array_equal(batch.next_policy, DATA.policy[next_row])
    # The rows, by walking through the episodes.
    row = transitions.NUMBERS.column(numbers, "row").tolist()
    if n_step == N:
        walked = decisions(DATA, pair=False)
        assert [walked[each][2] for each in row] == next_row.tolist()
    else:
        assert [each + 1 for each in row] == next_row.tolist()


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("plan", [(0, 0), (4, 3), (1, 0)], ids=["whole", "burn-in", "one step"])
@pytest.mark.parametrize("n_step", [1, N])
def test_of_sequences(in_memory: bool, plan: tuple[int, int], n_step: int) -> None:
    assert DATA.policy is not None
    view = View(GAMMA, n_step)
    table = sequence_table([DATA], view, "state", *plan, in_memory)
    batch = table.items.batch(picked(table, in_memory), jnp.float32(1))
    columns = table.columns[0]
    rows, _ = columns.rows_of(np.arange(table.count[0]))  # (B, L)
    burn_in, train = table.items.plan.burn_in, table.items.plan.train
    here = rows[:, burn_in : burn_in + train].T.reshape(-1)  # time before batch
    weight = np.asarray(batch.weight) > 0
    found = np.asarray(batch.next_policy)
    assert found.shape == (len(here), ACTIONS)
    own = transition_table([DATA], view, "state").columns[0].numbers
    names = ("row", "next_row")
    row, next_row = (transitions.NUMBERS.column(own, name).astype(np.int64) for name in names)
    after = dict(zip(row.tolist(), next_row.tolist(), strict=True))
    assert sorted(here[weight].tolist()) == sorted(after)  # every decision once
    expected = DATA.policy[[after[each] for each in here[weight].tolist()]]
    np.testing.assert_array_equal(found[weight], expected)


def test_without_a_policy_there_is_none() -> None:
    data = replace(DATA, policy=None)
    for table in (
        transition_table([data], View(GAMMA), "state"),
        sequence_table([data], View(GAMMA), "state", 0, 0),
    ):
        batch = table.items.batch(picked(table, True), jnp.float32(1))
        assert batch.next_policy is None
        assert table.items.blank(2).policy is None


def test_members_with_policies_of_their_own() -> None:
    """Each of two members finds its own probabilities in the store that they share."""
    assert DATA.policy is not None
    other = replace(DATA, policy=DATA.policy[:, ::-1].copy())
    table = transition_table([DATA, other], View(GAMMA), "state")
    store = jax.tree.map(jnp.asarray, table.store)
    parts = []
    for offset, count in zip(table.offset, table.count, strict=True):
        index = jnp.arange(offset, offset + count)
        parts.append(np.asarray(table.items.fetch(store, index).policy))
    np.testing.assert_array_equal(parts[1], parts[0][:, ::-1])
    sequenced = sequence_table([DATA, other], View(GAMMA), "state", 0, 0)
    store = jax.tree.map(jnp.asarray, sequenced.store)
    first, second = (
        sequenced.items.fetch(store, jnp.arange(offset, offset + count))
        for offset, count in zip(sequenced.offset, sequenced.count, strict=True)
    )
    inside = np.asarray(sequences.NUMBERS.column(np.asarray(first.numbers), "weight")) > 0
    np.testing.assert_array_equal(
        np.asarray(second.policy)[inside], np.asarray(first.policy)[inside][:, ::-1]
    )


def test_with_and_without_a_policy_do_not_mix() -> None:
    with pytest.raises(ValueError, match="trained together need equal"):
        transition_table([DATA, replace(DATA, policy=None)], View(GAMMA), "state")


def test_blank_items_have_the_shape_of_picked_ones() -> None:
    for table in (
        transition_table([DATA], View(GAMMA), "state"),
        sequence_table([DATA], View(GAMMA), "state", 4, 3),
    ):
        blank, first = table.items.blank(int(table.count[0])), picked(table, True)
        assert jax.tree.map(jnp.shape, blank) == jax.tree.map(jnp.shape, first)


def test_rows_go_with_their_episodes() -> None:
    assert DATA.policy is not None
    chosen = DATA.select(np.array([2, 0]), "two")
    rows = np.concatenate([np.arange(*DATA.offsets[[2, 3]]), np.arange(*DATA.offsets[[0, 1]])])
    np.testing.assert_array_equal(chosen.policy, DATA.policy[rows])
    np.testing.assert_array_equal(DATA.part(1, 3).policy, DATA.policy[slice(*DATA.offsets[[1, 3]])])
