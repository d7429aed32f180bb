"""The packed table: rows hold what the columns held, and members find their own rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve.data.dataset import NO_ACTION, Dataset, Episode
from rbve.data.transitions import Bootstrap, View, transitions
from rbve.training.layout import SCALARS, Layout
from rbve.training.table import Table, pack
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


def rows_of(table: Table, member: int) -> np.ndarray:
    offset, count = int(table.offset[member]), int(table.count[member])
    return table.rows[offset : offset + count]


def unpack(table: Table, member: int) -> tuple[jax.Array, jax.Array, Batch]:
    scale = jnp.float32(table.g_scale[member])
    picked = table.layout.unpack(jnp.asarray(rows_of(table, member)))
    pairs, batch = table.layout.batch(picked, scale)
    return pairs.obs, pairs.next_obs, batch


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
    table = pack([data], VIEW, bootstrap)
    assert table.rows.dtype == np.float32
    assert table.rows.shape == (len(transitions(data, VIEW, bootstrap).row), table.layout.width)
    assert table.layout == Layout(shape, 1, ACTIONS, masked, pixels=dtype == "uint8")
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
    table = pack([data], View(0.5), "pair")
    # s, s', a, r, discount, a', has a', V̂, legal, next legal
    assert table.rows.tolist() == [
        [10, 11, 20, 21, 2, 0.25, 0.5, 1, 1, 2.25, 0, 0, 1, 1, 1, 0],
        [20, 21, 30, 31, 1, 4, 0, 0, 0, 4, 1, 1, 0, 1, 0, 0],
    ]
    assert table.layout.width == 2 * 2 + SCALARS + 2 * 3
    assert table.g_scale.tolist() == [0.875]


def test_members_find_their_own_rows() -> None:
    members = [dataset(3, seed=1), dataset(7, seed=2), dataset(1, seed=3)]
    table = pack(members, VIEW, "pair")
    sizes = [len(transitions(data, VIEW, "pair").row) for data in members]
    assert len(set(sizes)) == 3
    assert table.count.tolist() == sizes
    assert table.offset.tolist() == [0, sizes[0], sizes[0] + sizes[1]]
    assert len(table.rows) == sum(sizes)
    assert len(set(table.g_scale.tolist())) == 3
    for member, data in enumerate(members):
        assert_holds(table, member, data, VIEW, "pair")
        alone = pack([data], VIEW, "pair")
        np.testing.assert_array_equal(rows_of(table, member), alone.rows)
        assert table.g_scale[member] == alone.g_scale[0]


def test_members_of_one_dataset_share_its_rows() -> None:
    first, second = dataset(3, seed=1), dataset(4, seed=2)
    table = pack([first, second, first, first, second], VIEW, "state")
    size, other = first.num_transitions, second.num_transitions
    assert len(table.rows) == size + other
    assert table.offset.tolist() == [0, size, 0, 0, size]
    assert table.count.tolist() == [size, other, size, size, other]
    assert table.g_scale[0] == table.g_scale[2]
    for member, data in enumerate([first, second, first, first, second]):
        assert_holds(table, member, data)


def test_equal_copies_are_datasets_of_their_own() -> None:
    table = pack([dataset(3), dataset(3)], VIEW, "state")
    assert table.offset.tolist() == [0, len(table.rows) // 2]


def test_datasets_of_different_layouts_are_refused() -> None:
    base = dataset(2)
    more_actions = Dataset.from_episodes([base.episode(0)], ACTIONS + 1)
    for other in (dataset(2, shape=(6,)), dataset(2, masked=True), more_actions):
        with pytest.raises(ValueError, match=r"need equal observations, actions and masks; got .*"):
            pack([base, other], VIEW, "state")


def test_no_dataset_is_refused() -> None:
    with pytest.raises(ValueError, match="need equal observations"):
        pack([], VIEW, "state")


def test_data_without_a_trainable_row_is_refused() -> None:
    lone = Episode.from_steps(np.zeros((2, 1)), [0], [1.0], terminated=False)
    data = Dataset.from_episodes([lone, lone], 2)
    with pytest.raises(ValueError, match="no transition can be trained on"):
        pack([data], VIEW, "pair")


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -2.7])
def test_a_constant_v_hat_has_no_deviation(value: float) -> None:
    lone = Episode.from_steps(np.zeros((2, 1)), [0], [value], terminated=True)
    constant = Dataset.from_episodes([lone] * 1000, 2)
    varied = Dataset.from_episodes([lone, lone._replace(reward=np.array([5.0, 0]))], 2)
    table = pack([varied, constant], VIEW, "state")
    assert table.g_scale[1] == 0
    assert table.g_scale[0] > 0


def test_the_scale_follows_the_rows_trained_on() -> None:
    # The last decision of a truncated episode does not train a pair, so its V̂ does not count.
    made = Episode.from_steps(np.zeros((4, 1)), [0, 1, 0], [1.0, 2.0, 400.0], terminated=False)
    data = Dataset.from_episodes([made], 2)
    g = [1 + 0.5 * (2 + 200), 2 + 200, 400]
    assert pack([data], View(0.5), "pair").g_scale[0] == pytest.approx(np.std(g[:2]))
    assert pack([data], View(0.5), "state").g_scale[0] == pytest.approx(np.std(g))


def test_unpacking_compiles() -> None:
    data = dataset(5, masked=True)
    table = pack([data], VIEW, "state")
    compiled = jax.jit(table.layout.unpack)(jnp.asarray(table.rows))
    plain = table.layout.unpack(jnp.asarray(table.rows))
    jax.tree.map(np.testing.assert_array_equal, compiled, plain)
