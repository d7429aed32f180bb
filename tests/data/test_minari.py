"""Minari datasets written here: nothing is lost, and the minari package loads them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import minari
import numpy as np
import pytest
from gymnasium import spaces
from support import stores

from rbve.data import Dataset, Episode, load, source, write
from rbve.data.features import Feature, Features
from rbve.data.formats import read, recognise
from rbve.data.manifest import NUMBERS
from rbve.data.source import Source, groups

WRITTEN = ("minari", "minari_arrow")


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the minari package looks for datasets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def rich() -> Dataset:
    """A terminated episode, one of one step cut off unseen, a fragment with its next action."""
    return Dataset.from_episodes(
        [
            Episode(
                np.array([[1, 0], [2, 1], [3.25, 0]], np.float16),
                np.array([1, 2, -1]),
                np.array([0.1, -2, 0], np.float32),
                terminated=True,
                executed=np.array([1, 0, -1]),
                legal=np.array([[0, 1, 1], [1, 0, 1], [0, 0, 0]], bool),
                propensity=np.array([0.25, 0.7, 1], np.float32),
            ),
            Episode(
                np.array([[4, 1], [4, 1]], np.float16),
                np.array([0, -1]),
                np.array([7, 0], np.float32),
                terminated=False,
                executed=np.array([2, -1]),
                legal=np.ones((2, 3), bool),
                propensity=np.array([1, 1], np.float32),
                final_observed=False,
            ),
            Episode(
                np.array([[5, 0], [6, 1]], np.float16),
                np.array([2, 1]),
                np.array([0.3, 0], np.float32),
                terminated=False,
                complete=False,
                episode_return=12.7,
                executed=np.array([2, 0]),
                legal=np.ones((2, 3), bool),
                propensity=np.array([0.5, 0.1], np.float32),
            ),
        ],
        ["gauche", 'dröite, "x"', "tout"],
        {"source": "log", "noise": 0.25},
        Features(
            (
                Feature("speed", mean=2.0, scale=0.5),
                Feature("ward", "category", categories=("a", "b")),
            )
        ),
    )


def assert_same(found: Dataset, expected: Dataset) -> None:
    stores.assert_same(found, expected)
    assert found.features == expected.features
    assert found.provenance == expected.provenance


@pytest.mark.parametrize("format", WRITTEN)
def test_everything_survives(root: Path, format: str) -> None:
    write(rich(), root / "x", format)
    assert recognise(root / "x") == recognise(root / "x" / "data") == format
    assert_same(load(root / "x"), rich())
    assert_same(load(root / "x" / "data"), rich())


@pytest.mark.parametrize("format", WRITTEN)
@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 2)])
def test_observations_of_any_type(root: Path, format: str, dtype: str, shape: tuple) -> None:
    obs = np.arange(5 * np.prod(shape, dtype=int)).reshape(5, *shape).astype(dtype)
    if obs.dtype.kind in "iu":
        obs.flat[-1] = np.iinfo(dtype).max
    steps = [(obs[:3], [1, 0], [1, 2], True), (obs[3:], [1], [3], False)]
    data = Dataset.from_episodes([Episode.from_steps(*step) for step in steps], 2)
    write(data, root / "x-v1", format)
    assert_same(load(root / "x-v1"), data)
    theirs = minari.load_dataset("x-v1")
    assert theirs.observation_space.shape == shape
    assert theirs.observation_space.dtype == dtype
    assert theirs[0].infos == {}
    for episode, (seen, *_) in zip(theirs, steps, strict=True):
        assert episode.observations.dtype == dtype
        np.testing.assert_array_equal(episode.observations, seen)


@pytest.mark.parametrize("format", WRITTEN)
def test_minari_loads_it(root: Path, format: str) -> None:
    write(rich(), root / "x-v3", format)
    assert list(minari.list_local_datasets()) == ["x-v3"]
    found = minari.load_dataset("x-v3")
    assert (found.total_episodes, found.total_steps) == (3, 4)
    assert found.action_space == spaces.Discrete(3)
    first, second, third = found
    np.testing.assert_array_equal(first.observations, [[1, 0], [2, 1], [3.25, 0]])
    np.testing.assert_array_equal(first.actions, [1, 2])
    np.testing.assert_array_equal(first.rewards, np.array([0.1, -2], np.float32))
    np.testing.assert_array_equal(first.terminations, [False, True])
    np.testing.assert_array_equal(first.truncations, [False, False])
    np.testing.assert_array_equal(
        first.infos["action_mask"], [[False, True, True], [True, False, True], [False] * 3]
    )
    np.testing.assert_array_equal(first.infos["executed_action"], [1, 0, -1])
    np.testing.assert_array_equal(third.infos["propensity"], np.array([0.5, 0.1], np.float32))
    assert [list(end) for end in (second.terminations, second.truncations)] == [[False], [True]]
    assert "total_steps=1" in repr(second)
    facts = list(found.storage.get_episode_metadata([0, 2]))
    assert facts[0]["total_steps"] == 2
    assert facts[1]["rbve_next_action"] == 1
    assert not facts[1]["rbve_complete"]
    assert facts[1]["rbve_episode_return"] == 12.7
    assert not any(name.startswith("rbve") for name in facts[0])
    assert minari.split_dataset(found, [1, 2], seed=0)[1].total_steps in (2, 3)


@pytest.mark.parametrize("format", WRITTEN)
def test_frames_stay_exact(root: Path, format: str) -> None:
    """Minari would make them JPEG."""
    frames = np.random.default_rng(0).integers(0, 255, (3, 40, 33, 3), np.uint8, endpoint=True)
    data = Dataset.from_episodes([Episode.from_steps(frames, [0, 1], [0, 1], True)], 2)
    write(data, root / "x-v0", format)
    assert_same(load(root / "x-v0"), data)
    np.testing.assert_array_equal(minari.load_dataset("x-v0")[0].observations, frames)


def test_the_return_is_kept_only_where_rewards_do_not_give_it(root: Path) -> None:
    rng = np.random.default_rng(3)
    runs = [
        Episode.from_steps(np.zeros((n + 1, 1)), [0] * n, rng.normal(size=n), True)
        for n in (1, 9, 129, 9000)
    ]
    data = Dataset.from_episodes(runs, 1)
    write(data, root / "x", "minari_arrow")
    np.testing.assert_array_equal(load(root / "x").episode_return, data.episode_return)
    facts = [json.loads((root / f"x/data/{n}/metadata.json").read_text()) for n in range(4)]
    assert [set(fact) for fact in facts] == [{"id", "total_steps"}] * 4


@pytest.mark.parametrize("format", WRITTEN)
def test_overwriting(root: Path, format: str) -> None:
    write(rich(), root / "x", format)
    with pytest.raises(ValueError, match=r"x: already holds a dataset; pass --overwrite"):
        write(rich(), root / "x", format)
    short = rich().part(0, 1)
    write(short, root / "x", "minari", overwrite=True)
    assert load(root / "x").num_episodes == 1
    (root / "x" / "data" / "thesis.txt").write_text("")
    with pytest.raises(ValueError, match=r"thesis.txt: not a file of the dataset around it"):
        write(rich(), root / "x", format, overwrite=True)
    (root / "full").mkdir()
    (root / "full" / "other").write_text("")
    with pytest.raises(ValueError, match="full: the folder is not empty and holds no dataset"):
        write(rich(), root / "full", format, overwrite=True)


@pytest.mark.parametrize("format", WRITTEN)
def test_a_failed_write_leaves_nothing(root: Path, format: str) -> None:
    def parts() -> Any:
        yield rich()
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        write(Source(parts()), root / "x", format)
    with pytest.raises(ValueError, match="no episode to write"):
        write(Source(iter(())), root / "x", format)
    assert list(root.iterdir()) == []


def test_wrong_values_are_not_written(root: Path) -> None:
    data = rich()
    wrong = replace(data, reward=np.where(np.arange(7) == 3, np.nan, data.reward))
    with pytest.raises(ValueError, match="x: episode 1, step 0: the reward is not finite"):
        write(wrong, root / "x", "minari")
    assert list(root.iterdir()) == []


def test_parts_are_bounded_and_counted(root: Path) -> None:
    write(rich(), root / "x", "minari")
    source = read(root / "x")
    assert (source.total, source.position()) == (3, 0)
    assert sum(part.num_episodes for part in source.parts) == 3
    assert source.position() == 3
    sizes = (2, 2, 9, 2)  # rows of 2000 bytes
    runs = [
        Episode.from_steps(np.zeros((n, 250)), [0] * (n - 1), [0] * (n - 1), True) for n in sizes
    ]
    assert [len(held) for held in groups(iter(runs), most=10_000)] == [2, 1, 1]


def test_messages_count_episodes_over_parts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "groups", lambda episodes: groups(episodes, most=1))
    write(rich(), root / "x", "minari")
    assert [part.num_episodes for part in read(root / "x").parts] == [1, 1, 1]
    with h5py.File(root / "x/data/main_data.hdf5", "a") as file:
        file["episode_2/rewards"][0] = np.nan
    with pytest.raises(ValueError, match="episode 2, step 0: the reward is not finite"):
        load(root / "x")


def test_h5py_is_asked_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(rich(), root / "x", "minari")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r'pip install "rbve\[hdf5\]"'):
        read(root / "x")
    with pytest.raises(ImportError, match=r'pip install "rbve\[hdf5\]"'):
        write(rich(), root / "y", "minari")
    write(rich(), root / "y", "minari_arrow")
    assert_same(load(root / "y"), rich())
