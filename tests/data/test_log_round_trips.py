"""What is written as Parquet or CSV reads back without a flag: random sets of episodes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rbve.data import Dataset, Episode, load, write
from rbve.data.features import Feature, Features
from rbve.data.source import parts_of

COLUMNS = ("obs", "action", "reward", "offsets", "terminated", "complete", "episode_return")
OPTIONAL = ("executed", "legal", "propensity")
DTYPES = (np.float32, np.float64, np.uint8, np.int64, np.bool_, np.float16, np.int16)
NAMES = (("0", "1", "2"), ("stay", "go", "0"), ("ä", "β, γ", '"quoted"\nline'), ("2", "0", "1"))


@st.composite
def datasets(draw: Any) -> Dataset:
    """Episodes of every kind: one step, truncated, fragments, unseen ends, all columns or few."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.sampled_from([(), (1,), (3,), (2, 3)]))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    names = draw(st.sampled_from(NAMES))
    features = None
    if shape == (3,) and dtype in (np.float32, np.float64):
        features = Features(
            (
                Feature("age", mean=0.1, scale=0.3),
                Feature("time", "category", categories=("A", "B", "7z", "x, y")),
                Feature("legal_note"),
            )
        )
    held = {name: draw(st.booleans()) for name in OPTIONAL}
    episodes = []
    for _ in range(draw(st.integers(1, 6))):
        length = draw(st.integers(1, 4))
        rows = length + 1
        obs = (rng.normal(size=(rows, *shape)) * 100).astype(dtype)
        if features is not None:
            obs[:, 1] = rng.integers(4, size=rows)
        action = rng.integers(3, size=rows)
        terminated, complete, known = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
        if terminated or complete or draw(st.booleans()):
            action[-1] = -1
        if not known:
            obs[-1] = obs[-2]
        reward = rng.normal(size=rows).astype(np.float32)
        reward[-1] = 0
        legal = rng.random((rows, 3)) < 0.5
        legal[np.arange(rows), np.maximum(action, 0)] = True
        executed = rng.integers(3, size=rows)
        executed[-1] = -1
        episodes.append(
            Episode(
                obs,
                action,
                reward,
                terminated,
                complete,
                draw(st.sampled_from([None, 1 / 3, -1e300])),
                executed=executed if held["executed"] else None,
                legal=legal if held["legal"] else None,
                propensity=rng.uniform(0.1, 1, rows).astype("f4") if held["propensity"] else None,
                final_observed=known,
            )
        )
    provenance = {"made": "here", "deep": {"list": [1, 2.5, None]}}
    return Dataset.from_episodes(episodes, names, provenance, features)


@settings(max_examples=50, deadline=None)
@given(datasets())
def test_parquet_keeps_everything(data: Dataset) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.parquet"
        write(parts_of(data, part_bytes=1), path)  # one part per episode
        found = load(path)
    for name in (*COLUMNS, *OPTIONAL):
        expected = getattr(data, name)
        if expected is None:
            assert getattr(found, name) is None, name
        else:
            assert getattr(found, name).dtype == expected.dtype, name
            np.testing.assert_array_equal(getattr(found, name), expected, err_msg=name)
    np.testing.assert_array_equal(found.finals_known, data.finals_known)
    assert (found.final_observed is None) == data.finals_known.all()
    assert found.features == data.features
    assert found.actions == data.actions
    assert found.provenance == data.provenance


@settings(max_examples=50, deadline=None)
@given(datasets())
def test_csv_keeps_values(data: Dataset) -> None:
    """Not shapes, nor the ids and names of actions that no mask and no decision holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        write(parts_of(data, part_bytes=1), path)
        try:
            found = load(path)
        except ValueError as error:
            # Names that are numbers beside names that are not have to be declared.
            assert "declare the set with --actions" in str(error)  # noqa: PT017
            assert data.actions == NAMES[1]  # "0" beside "go"
            return
    for name in ("reward", "offsets", "terminated", "complete", "episode_return", "propensity"):
        expected = getattr(data, name)
        if expected is None:
            assert getattr(found, name) is None, name
        else:
            assert getattr(found, name).dtype == expected.dtype, name
            np.testing.assert_array_equal(getattr(found, name), expected, err_msg=name)
    np.testing.assert_array_equal(found.finals_known, data.finals_known)
    for name in ("action", "executed"):
        if getattr(data, name) is not None:
            assert [*named(found, name)] == [*named(data, name)]
    if data.legal is not None:
        assert found.legal is not None
        order = [data.actions.index(action) for action in found.actions]
        np.testing.assert_array_equal(found.legal, data.legal[:, order])
    flat = data.obs.reshape(len(data.obs), -1)
    assert found.features is not None
    for index, column in enumerate(found.features.columns):
        if column.kind == "number":
            np.testing.assert_array_equal(found.obs[:, index], flat[:, index])
        else:
            assert data.features is not None
            names = data.features.columns[index].categories
            assert [column.categories[int(code)] for code in found.obs[:, index]] == [
                names[int(code)] for code in flat[:, index]
            ]


def named(data: Dataset, column: str) -> list[str | None]:
    return [data.actions[code] if code >= 0 else None for code in getattr(data, column)]


def test_many_parts_are_one_file(tmp_path: Path) -> None:
    """Columns a first part does not need are there for later ones."""
    whole = [Episode.from_steps(np.eye(3)[:2], [0], [float(index)], True) for index in range(4)]
    whole[2] = whole[2]._replace(complete=False, terminated=False, episode_return=9.5)
    whole[3] = whole[3]._replace(final_observed=False, obs=np.eye(3)[[0, 0]])
    data = Dataset.from_episodes(whole, 2)
    for name in ("a.parquet", "a.csv"):
        write(parts_of(data, part_bytes=1), tmp_path / name)
        found = load(tmp_path / name)
        np.testing.assert_array_equal(found.complete, [True, True, False, True])
        np.testing.assert_array_equal(found.episode_return, [0, 1, 9.5, 3])
        np.testing.assert_array_equal(found.finals_known, [True, True, True, False])
        np.testing.assert_array_equal(found.obs, data.obs)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
def test_a_fragment_keeps_its_next_action(tmp_path: Path, name: str) -> None:
    pair = Episode(np.eye(2), np.array([0, 1]), np.array([1.5, 0]), False, complete=False)
    over = Episode(np.eye(2), np.array([1, -1]), np.array([2.5, 0]), True, complete=False)
    write(Dataset.from_episodes([pair, over], ["a", "b"]), tmp_path / name)
    found = load(tmp_path / name)
    np.testing.assert_array_equal(found.action, [0, 1, 1, -1])
    np.testing.assert_array_equal(found.reward, [1.5, 0, 2.5, 0])
    np.testing.assert_array_equal(found.terminated, [False, True])
    assert not found.complete.any()
    assert found.finals_known.all()
