"""What a survey of the whole log settles: statistics, types, action sets, notes; and options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rbve.data import Dataset, formats
from rbve.data.formats import parquet, read
from rbve.data.logs import LogOptions

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """A log of one episode with an action 0 and a reward in each row, unless given otherwise."""

    def write_table(**columns: Any) -> Path:
        path = tmp_path / "log.parquet"
        rows = len(next(iter(columns.values())))
        base = {"episode": [1] * rows, "action": [0] * rows, "reward": [1.0] * rows}
        pq.write_table(pa.table({**base, **columns}), path)
        return path

    return write_table


def joined(path: Path, options: LogOptions | None = None) -> Dataset:
    return Dataset.join(read(path, options=options).parts)


def said(path: Path, *words: str, options: LogOptions | None = None) -> bool:
    source = read(path, options=options)
    list(source.parts)
    return any(all(word in note for word in words) for note in source.notes)


# Statistics


def test_statistics_are_exact_far_from_zero(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of squares would lose all digits here: the mean is 1e9 times the deviation."""
    rng = np.random.default_rng(0)
    values = 1e9 + rng.normal(size=5000)
    monkeypatch.setattr(parquet, "MAX_ROWS", 7)
    features = joined(put(x=values)).features
    assert features is not None
    centred = values - 1e9
    assert features.columns[0].mean == pytest.approx(1e9 + centred.mean(), rel=1e-15)
    assert features.columns[0].scale == pytest.approx(centred.std(), rel=1e-7)


def test_a_constant_column_has_scale_1(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MAX_ROWS", 7)
    data = joined(put(x=[0.1] * 100, y=[float(index) for index in range(100)]))
    assert data.features is not None
    assert (data.features.columns[0].mean, data.features.columns[0].scale) == (0.1, 1.0)
    np.testing.assert_array_equal(data.features.encode(data.obs)[:, 0], 0)
    assert data.features.columns[1].scale == pytest.approx(np.arange(100).std())


def test_huge_numbers_keep_a_finite_scale(put: Put) -> None:
    data = joined(put(x=[3e38, -3e38, 3e38, -1.5e38]))
    assert data.features is not None
    encoded = data.features.encode(data.obs)
    assert np.isfinite(encoded).all()
    assert np.abs(encoded).max() <= 2
    with pytest.raises(ValueError, match=r"column 'x' is empty or not a finite value \(in 32 bits"):
        joined(put(x=[1e308, -1e308, 1e308, -1.5e308]))


# Types of observations


@pytest.mark.parametrize(
    ("columns", "dtype"),
    [
        ({"x": pa.array([1, 2], pa.int64()), "y": pa.array([3, 4], pa.int64())}, np.int64),
        ({"x": pa.array([1, 2], pa.uint8())}, np.uint8),
        ({"x": pa.array([0.1, 2], pa.float64())}, np.float64),
        ({"x": pa.array([0.5, 2], pa.float64())}, np.float64),
        ({"x": pa.array([0.1, 2], pa.float32())}, np.float32),
        ({"x": pa.array([0.1, 2], pa.float32()), "y": pa.array([3, 4])}, np.float32),
        ({"x": pa.array([0.1, 2], pa.float32()), "y": pa.array([2**24 + 1, 4])}, np.float64),
        ({"x": pa.array([0.1, 2], pa.float64()), "y": pa.array([3, 4])}, np.float64),
        ({"x": pa.array([0.5, 2], pa.float64()), "y": pa.array([3, 4])}, np.float32),
        ({"x": ["a", "b"]}, np.float32),
        ({"x": ["a", "b"], "y": pa.array([3, 4])}, np.float32),
        ({"x": ["a", "b"], "y": pa.array([0.1, 4])}, np.float64),
    ],
)
def test_one_type_that_holds_all_columns(
    put: Put, columns: dict[str, Any], dtype: type[np.generic]
) -> None:
    data = joined(put(**columns))
    assert data.obs.dtype == dtype
    for index, column in enumerate(columns.values()):
        given = column if isinstance(column, list) else column.to_pylist()
        wanted = [sorted(given).index(value) for value in given] if given == ["a", "b"] else given
        assert data.obs[:2, index].tolist() == np.array(wanted, dtype).tolist()


def test_whole_numbers_beyond_floats_are_noted(put: Put) -> None:
    assert said(put(x=[2**60 + 1, 4], y=[0.5, 1.5]), "'x'", "2^53")
    data = joined(put(x=[2**60 + 1, 4]))
    assert data.obs[0, 0] == 2**60 + 1


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("reward", ["1.5", "2.5"]),
        ("time", [[1], [2]]),
        ("terminated", [[0], [1]]),
        ("action", [[0], [1]]),
        ("episode", [{"id": 1}, {"id": 1}]),
        ("propensity", [b"1", b"1"]),
        ("legal", ["0,1", "1,1"]),
        ("legal", [["a"], ["b"]]),
    ],
)
def test_types_no_role_can_use_are_named(put: Put, column: str, values: list[Any]) -> None:
    with pytest.raises(ValueError, match=rf"log.parquet: column '{column}' holds .*, and needs "):
        read(put(**{"x": [1, 2], column: values}))


# Categories


def test_numbers_can_be_categories(put: Put) -> None:
    data = joined(
        put(ward=[10, 9, 10], level=[1.0, 2.5, 1.0], x=[0.5, 1.5, 2.5]),
        LogOptions(categorical=("ward", "level")),
    )
    assert data.features is not None
    assert [column.kind for column in data.features.columns] == ["category", "category", "number"]
    assert data.features.columns[0].categories == ("10", "9")
    assert data.features.columns[1].categories == ("1", "2.5")
    np.testing.assert_array_equal(data.obs[:3], [[0, 0, 0.5], [1, 1, 1.5], [0, 0, 2.5]])
    rows = data.features.rows({"ward": 9.0, "level": "2.5", "x": 1})
    np.testing.assert_array_equal(rows, [[1, 1, 1]])


def test_an_unknown_categorical_column_is_named(put: Put) -> None:
    with pytest.raises(ValueError, match="--categorical names 'wrad'"):
        read(put(ward=[1, 2]), options=LogOptions(categorical=("wrad",)))


def test_text_that_looks_like_numbers_is_noted(put: Put) -> None:
    path = put(code=["10", "11", "10"])
    assert said(path, "'code' holds numbers as text ('10')")
    assert not said(put(code=["10", "x", "10"]), "numbers as text")


# Actions


def test_holes_among_ids_are_noted(put: Put) -> None:
    path = put(action=[0, 2, 3, 0], x=[1.0, 2.0, 3.0, 4.0])
    assert said(path, "action ids 1 never occur", "the set has 4 actions", "--actions 0 2 3")
    assert joined(path).actions == ("0", "1", "2", "3")
    data = joined(path, LogOptions(actions=("0", "2", "3")))
    assert data.actions == ("0", "2", "3")
    np.testing.assert_array_equal(data.action, [0, 1, 2, 0, -1])
    assert not said(path, "never occur", options=LogOptions(actions=("0", "2", "3")))
    assert not said(put(action=[0, 1, 2, 3], x=[1.0, 2.0, 3.0, 4.0]), "never occur")


def test_a_declared_set_keeps_its_order(put: Put) -> None:
    path = put(action=["b", "a", "b"], x=[1, 2, 3])
    np.testing.assert_array_equal(joined(path).action, [1, 0, 1, -1])
    data = joined(path, LogOptions(actions=("c", "b", "a")))
    np.testing.assert_array_equal(data.action, [1, 2, 1, -1])
    assert data.actions == ("c", "b", "a")


def test_yes_and_no_are_actions(put: Put) -> None:
    data = joined(put(action=[True, False, True], x=[1, 2, 3]))
    assert data.actions == ("False", "True")
    np.testing.assert_array_equal(data.action, [1, 0, 1, -1])


def test_executed_actions_belong_to_the_set(put: Put) -> None:
    data = joined(put(action=["b", "b"], executed=["b", "a"], x=[1, 2]))
    assert data.actions == ("a", "b")
    with pytest.raises(ValueError, match="action, executed hold numbers and names"):
        read(put(action=["b", "b"], executed=[0, 1], x=[1, 2]))


# Notes


def test_columns_taken_by_default_are_listed(put: Put) -> None:
    path = put(x=[1, 2], done=[0, 1])
    assert said(path, "taking every other column, x, done")
    assert said(path, "'done'", "--terminated done")
    assert not said(path, "every other", options=LogOptions(observation=("x",)))


def test_gaps_in_time_are_noted(put: Put) -> None:
    assert said(put(x=[1, 2, 3], time=[0, 1, 5]), "'time' does not always rise by 1", "row 2")
    for times in ([0, 1, 2], [0, 10, 20], [0.0, 0.1, 0.7]):
        assert not said(put(x=[1, 2, 3], time=times), "does not always rise")


def test_prefixes_keep_the_order_of_the_file(put: Put) -> None:
    path = put(obs_b=[1, 2], other=[9, 9], obs_a=[3, 4], obs_action=[0, 0])
    data = joined(path, LogOptions(observation=("obs_*",), action="obs_action"))
    assert data.features is not None
    assert data.features.names == ["obs_b", "obs_a"]


def test_an_empty_name_says_there_is_no_such_column(put: Put) -> None:
    path = put(x=[1, 2, 3], time=[0, 1, 0], terminated=[0, 1, 1])
    data = joined(path, LogOptions(episode="", time="", observation=("x", "time")))
    np.testing.assert_array_equal(data.lengths, [2, 1])
    assert data.obs.shape == (5, 2)


# LogOptions from a file


def test_options_from_toml(tmp_path: Path) -> None:
    file = tmp_path / "columns.toml"
    file.write_text(
        'episode = "visit"\nobservation = ["age", "ward"]\nactions = [0, 2]\n'
        'categorical = "ward"\nends = "truncated"\n'
    )
    assert formats.from_toml(file, LogOptions) == LogOptions(
        episode="visit",
        observation=("age", "ward"),
        actions=("0", "2"),
        categorical=("ward",),
        ends="truncated",
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('epsiode = "visit"', r"unknown option 'epsiode'. Did you mean 'episode'\? Known: "),
        ("episode = 3", "option 'episode' takes one name in quotes; got 3"),
        ("observation = [[1]]", "option 'observation' takes a list of names"),
        ('ends = "never"', "ends must be 'terminated', 'truncated' or 'each'; got 'never'"),
        ('actions = ["a", "a"]', "actions must be different names"),
        ("episode =", "not a TOML file"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "columns.toml"
    file.write_text(content)
    with pytest.raises(ValueError, match=f"columns.toml: {words}"):
        formats.from_toml(file, LogOptions)


def test_an_option_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"columns.toml: cannot be read"):
        formats.from_toml(tmp_path / "columns.toml", LogOptions)
