"""Features: raw rows to what a network sees, the same in NumPy and in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbve.data.features import Feature, Features

FEATURES = Features(
    (
        Feature("age", mean=50.0, scale=10.0),
        Feature("ward", "category", categories=("A", "B", "C")),
        Feature("smoker", "category", categories=("False", "True")),
        Feature("constant", mean=3.0),
    )
)


def test_raw_rows_become_inputs() -> None:
    rows = FEATURES.rows(
        [
            {"ward": "B", "age": 61, "smoker": False, "constant": 3, "extra": "ignored"},
            {"ward": "C", "age": "45", "smoker": "true", "constant": 4.5},
        ]
    )
    np.testing.assert_array_equal(rows, [[61, 1, 0, 3], [45, 2, 1, 4.5]])
    encoded = FEATURES.encode(rows)
    assert encoded.dtype == np.float32
    assert encoded.shape == (2, FEATURES.size) == (2, 7)
    np.testing.assert_allclose(
        encoded, [[1.1, 0, 1, 0, 1, 0, 0], [-0.5, 0, 0, 1, 0, 1, 1.5]], rtol=1e-6
    )


def test_one_row_alone() -> None:
    row = FEATURES.rows({"ward": "A", "age": 50, "smoker": True, "constant": 3})
    np.testing.assert_array_equal(FEATURES.encode(row), [[0, 1, 0, 0, 0, 1, 0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8])
def test_jax_sees_the_same(dtype: type[np.generic]) -> None:
    raw = np.array([[61, 1, 0, 3], [45, 2, 1, 4]]).astype(dtype)
    encode = jax.jit(lambda rows: FEATURES.encode(rows, jnp))
    found = encode(raw.astype(np.float32) if dtype is np.float64 else raw.astype(dtype))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, FEATURES.encode(raw), rtol=1e-6)


def test_numbers_far_from_zero_keep_their_differences() -> None:
    """Seconds since 1970 differ in digits a float32 does not have."""
    features = Features((Feature("stamp", mean=1.7e9, scale=20.0),))
    raw = np.array([[1_700_000_010], [1_700_000_020]])
    for rows in (raw, raw.astype(np.float64), features.rows([{"stamp": 1_700_000_010}])):
        np.testing.assert_allclose(features.encode(rows)[0], [0.5], rtol=1e-6)


def test_more_categories_than_a_byte_counts() -> None:
    features = Features((Feature("c", "category", categories=tuple(map(str, range(300)))),))
    encoded = features.encode(np.array([[44], [255]], np.uint8))
    np.testing.assert_array_equal(np.argwhere(encoded), [[0, 44], [1, 255]])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"ward": "b"}, "column 'ward': category 'b' .* Known: A, B, C"),
        ({"smoker": "maybe"}, "column 'smoker': category 'maybe'"),
        ({"age": "old"}, "column 'age' takes a number; got 'old'"),
        ({"age": None}, "column 'age' takes a number; got None"),
        ({"age": float("nan")}, "column 'age' takes a finite number"),
    ],
)
def test_wrong_rows_are_named(row: dict[str, object], words: str) -> None:
    good = {"ward": "A", "age": 50, "smoker": True, "constant": 3}
    with pytest.raises(ValueError, match=words):
        FEATURES.rows({**good, **row})


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ValueError, match="row 0 lacks the column 'ward'"):
        FEATURES.rows({"age": 1, "smoker": True, "constant": 3})


def test_whole_numbers_name_one_category_in_any_type() -> None:
    features = Features((Feature("code", "category", categories=("10", "9")),))
    rows = features.rows([{"code": value} for value in (9, 9.0, "9", np.int8(9), np.float32(9))])
    np.testing.assert_array_equal(rows, [[1]] * 5)


def test_json_keeps_everything() -> None:
    assert Features.from_json(FEATURES.to_json(), "here") == FEATURES
    for content in (None, [], [{}], [{"name": "x", "kind": "number", "mean": 0, "scale": 0}]):
        with pytest.raises(ValueError, match="here: 'features'"):
            Features.from_json(content, "here")
