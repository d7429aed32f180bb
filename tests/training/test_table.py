"""The packed table: rows hold what the columns held, and members find their own rows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve.data.dataset import NO_ACTION, Dataset, Episode
from rbve.data.transitions import Bootstrap, View, transitions
from rbve.training.batches.table import Table, transition_table
from rbve.training.batches.transitions import NUMBERS, TransitionItems, transition_columns
from rbve.types import Batch

VIEW = View(0.9, 2)
ACTIONS = 5


def dataset(
    episodes: int,
    seed: int = 0,
    shape: tuple[int, ...] = (2, 3),
    masked: bool = False,
    dtype: str = "float32",
) -> Dataset:
    rng = np.random.default_rng(seed)

    def make(index: int) -> Episode:
        length = int(rng.integers(1, 6)) if index else 6
        made = Episode.from_steps(
            rng.uniform(0, 200, (length + 1, *shape)).astype(dtype),
            rng.integers(0, ACTIONS, length),  # type: ignore[arg-type]
            rng.normal(size=length),  # type: ignore[arg-type]
            terminated=bool(index % 2),
        )
        legal = rng.random((length + 1, ACTIONS)) < 0.5
        legal[np.arange(length), made.action[:length]] = True
        return made._replace(legal=legal if masked else None)

    return Dataset.from_episodes([make(index) for index in range(episodes)], ACTIONS)


def fetch(table: Table, member: int) -> Any:
    """All items of a member."""
    index = int(table.offset[member]) + jnp.arange(int(table.count[member]))
    return table.items.fetch(jax.tree.map(jnp.asarray, table.store), index)


def unpack(table: Table, member: int) -> tuple[jax.Array, jax.Array, Batch]:
    picked = fetch(table, member)
    obs, next_obs = (table.items.join(picked.frames[:, k]) for k in range(2))
    return obs, next_obs, table.items.batch(picked, jnp.float32(table.g_scale[member]))


def assert_holds(
    table: Table, member: int, data: Dataset, view: View = VIEW, bootstrap: Bootstrap = "state"
) -> None:
    obs, next_obs, batch = unpack(table, member)
    expected = transitions(data, view, bootstrap)
    np.testing.assert_array_equal(obs, data.obs[expected.row].astype(np.float32))
    np.testing.assert_array_equal(next_obs, data.obs[expected.next_row].astype(np.float32))
    for name in ("action", "reward", "discount", "next_action", "has_next_action", "g"):
        found, column = getattr(batch, name), getattr(expected, name)
        assert found.dtype == column.dtype, name
        np.testing.assert_array_equal(found, column, err_msg=name)
    np.testing.assert_array_equal(batch.weight, np.ones(len(expected.row)))
    assert batch.g_scale == pytest.approx(float(np.std(expected.g, dtype=np.float64)), rel=1e-6)
    if data.legal is None:
        assert batch.legal is None
        assert batch.next_legal is None
    else:
        np.testing.assert_array_equal(batch.legal, data.legal[expected.row])
        np.testing.assert_array_equal(batch.next_legal, data.legal[expected.next_row])


@pytest.mark.parametrize("bootstrap", ["state", "pair", "none"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("shape", "dtype"), [((), "float32"), ((4,), "float64"), ((2, 3), "uint8"), ((1, 2, 2), "bool")]
)
def test_unpacking_returns_the_columns(
    bootstrap: Bootstrap, masked: bool, shape: tuple[int, ...], dtype: str
) -> None:
    data = dataset(6, shape=shape, masked=masked, dtype=dtype)
    table = transition_table([data], VIEW, bootstrap)
    assert table.store.frames.dtype == (np.uint8 if dtype == "uint8" else np.float32)
    assert table.store.frames.shape == (len(data.action), *shape)  # every frame once
    assert len(table.store.numbers) == len(transitions(data, VIEW, bootstrap).row)
    assert table.items == TransitionItems(shape, 1, ACTIONS, masked, pixels=dtype == "uint8")
    assert_holds(table, 0, data, VIEW, bootstrap)


def test_a_row_by_hand() -> None:
    data = Dataset.from_episodes(
        [
            Episode(
                obs=np.array([[10.0, 11.0], [20.0, 21.0], [30.0, 31.0]]),
                action=np.array([2, 1, NO_ACTION]),
                reward=np.array([0.25, 4.0, 0.0]),
                terminated=True,
                legal=np.array([[0, 0, 1], [1, 1, 0], [1, 0, 0]], bool),
            )
        ],
        3,
    )
    table = transition_table([data], View(0.5), "pair")
    store = table.store
    assert store.frames.tolist() == [[10, 11], [20, 21], [30, 31]]
    assert store.legal.tolist() == data.legal.tolist()
    assert {name: column.tolist() for name, column in NUMBERS.unpack(store.numbers).items()} == {
        "row": [0, 1],
        "next_row": [1, 2],
        "first_row": [0, 0],
        "action": [2, 1],
        "reward": [0.25, 4],
        "discount": [0.5, 0],
        "next_action": [1, 0],
        "has_next_action": [True, False],
        "g": [2.25, 4],
    }
    picked = fetch(table, 0)
    assert picked.frames[:, :, 0].tolist() == [[[10, 11], [20, 21]], [[20, 21], [30, 31]]]
    assert picked.legal.tolist() == [
        [[False, False, True], [True, True, False]],
        [[True, True, False], [True, False, False]],
    ]
    assert table.g_scale.tolist() == [0.875]


def test_members_find_their_own_rows() -> None:
    members = [dataset(3, seed=1), dataset(7, seed=2), dataset(1, seed=3)]
    table = transition_table(members, VIEW, "pair")
    sizes = [len(transitions(data, VIEW, "pair").row) for data in members]
    assert len(set(sizes)) == 3
    assert table.count.tolist() == sizes
    assert table.offset.tolist() == [0, sizes[0], sizes[0] + sizes[1]]
    assert len(table.store.numbers) == sum(sizes)
    assert len(table.store.frames) == sum(len(data.action) for data in members)
    assert len(set(table.g_scale.tolist())) == 3
    for member, data in enumerate(members):
        assert_holds(table, member, data, VIEW, "pair")
        alone = transition_table([data], VIEW, "pair")
        jax.tree.map(np.testing.assert_array_equal, unpack(table, member), unpack(alone, 0))
        assert table.g_scale[member] == alone.g_scale[0]


def test_members_of_one_dataset_share_its_rows() -> None:
    first, second = dataset(3, seed=1), dataset(4, seed=2)
    table = transition_table([first, second, first, first, second], VIEW, "state")
    size, other = first.num_transitions, second.num_transitions
    assert len(table.store.numbers) == size + other
    assert table.offset.tolist() == [0, size, 0, 0, size]
    assert table.count.tolist() == [size, other, size, size, other]
    assert table.g_scale[0] == table.g_scale[2]
    for member, data in enumerate([first, second, first, first, second]):
        assert_holds(table, member, data)


def test_equal_copies_are_datasets_of_their_own() -> None:
    table = transition_table([dataset(3), dataset(3)], VIEW, "state")
    assert table.offset.tolist() == [0, len(table.store.numbers) // 2]


def test_datasets_of_different_layouts_are_refused() -> None:
    base = dataset(2)
    more_actions = Dataset.from_episodes([base.episode(0)], ACTIONS + 1)
    for other in (dataset(2, shape=(6,)), dataset(2, masked=True), more_actions):
        with pytest.raises(ValueError, match=r"need equal observations, actions and masks; got .*"):
            transition_table([base, other], VIEW, "state")


def test_no_dataset_is_refused() -> None:
    with pytest.raises(ValueError, match="need equal observations"):
        transition_table([], VIEW, "state")


def test_data_without_a_trainable_row_is_refused() -> None:
    lone = Episode.from_steps(np.zeros((2, 1)), [0], [1.0], terminated=False)
    data = Dataset.from_episodes([lone, lone], 2)
    with pytest.raises(ValueError, match="no transition can be trained on"):
        transition_table([data], VIEW, "pair")


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -2.7])
def test_a_constant_v_hat_has_no_deviation(value: float) -> None:
    lone = Episode.from_steps(np.zeros((2, 1)), [0], [value], terminated=True)
    constant = Dataset.from_episodes([lone] * 1000, 2)
    varied = Dataset.from_episodes([lone, lone._replace(reward=np.array([5.0, 0]))], 2)
    table = transition_table([varied, constant], VIEW, "state")
    assert table.g_scale[1] == 0
    assert table.g_scale[0] > 0


def test_the_scale_follows_the_rows_trained_on() -> None:
    # The last decision of a truncated episode does not train a pair, so its V̂ does not count.
    made = Episode.from_steps(np.zeros((4, 1)), [0, 1, 0], [1.0, 2.0, 400.0], terminated=False)
    data = Dataset.from_episodes([made], 2)
    g = [1 + 0.5 * (2 + 200), 2 + 200, 400]
    assert transition_table([data], View(0.5), "pair").g_scale[0] == pytest.approx(np.std(g[:2]))
    assert transition_table([data], View(0.5), "state").g_scale[0] == pytest.approx(np.std(g))


@pytest.mark.parametrize("stack", [1, 3])
def test_fetched_and_compiled_equals_picked_on_the_host(stack: int) -> None:
    members = [dataset(5, masked=True), dataset(4, seed=1, masked=True)]
    table = transition_table(members, VIEW, "state", stack)
    store = jax.tree.map(jnp.asarray, table.store)
    for member, columns in enumerate(table.columns):
        index = np.arange(columns.count)
        there = int(table.offset[member]) + jnp.asarray(index)
        fetched = jax.jit(table.items.fetch)(store, there)
        picked = columns.pick(index)
        np.testing.assert_array_equal(fetched.frames, picked.frames)
        np.testing.assert_array_equal(fetched.legal, picked.legal)
        batches = [table.items.batch(each, jnp.float32(1)) for each in (fetched, picked)]
        jax.tree.map(np.testing.assert_array_equal, *batches)


def test_any_action_id_and_any_float_is_exact() -> None:
    """Ids beyond 2²⁴ are not whole in float32; NaN and −0 have bits of their own."""
    action = np.array([2**24 + 1, 2**31 - 1], np.int64)
    reward = np.array([np.nan, -0.0], np.float32)
    packed = NUMBERS.pack(action=action, reward=reward, has_next_action=True)
    named = jax.jit(NUMBERS.unpack)(packed)
    assert named["action"].tolist() == action.tolist()
    assert np.asarray(named["reward"]).tobytes() == reward.tobytes()
    assert named["has_next_action"].tolist() == [True, True]
    with pytest.raises(KeyError, match="rewrd"):
        NUMBERS.pack(rewrd=1)


def test_the_size_of_a_store_is_known_before_it_is_made() -> None:
    for masked in (False, True):
        columns = transition_columns(dataset(4, masked=masked), VIEW, "state", 1)
        held = sum(column.nbytes for column in columns.store() if column is not None)
        assert columns.nbytes == held
