"""Datasets the minari package wrote read exactly, whatever their spaces and data format."""

from __future__ import annotations

import gc
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import gymnasium as gym
import minari
import numpy as np
import pytest
from gymnasium import spaces
from minari.data_collector.episode_buffer import EpisodeBuffer

from rbve.data import Dataset, load, write
from rbve.data.features import Feature, Features
from rbve.data.formats import read, recognise

FORMATS = {"hdf5": "minari", "arrow": "minari_arrow", "parquet": "minari_arrow"}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the minari package looks for datasets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


class Counter(gym.Env):
    """Observes (count, 10 × count); says which actions are legal."""

    observation_space = spaces.Box(-1000, 1000, (2,), np.float32)
    action_space = spaces.Discrete(3, start=-1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.count = 0
        return self.seen()

    def step(self, action: Any) -> Any:
        self.count += 1
        seen, info = self.seen()
        return seen, self.count + float(action) / 8, self.count == 3, False, info

    def seen(self) -> Any:
        mask = np.array([1, self.count % 2, 1], np.int8)
        return np.array([self.count, 10 * self.count], np.float32), {"action_mask": mask}


@pytest.mark.parametrize("data_format", FORMATS)
def test_what_a_data_collector_wrote(root: Path, data_format: str) -> None:
    env = minari.DataCollector(Counter(), record_infos=True, data_format=data_format)
    for plan in ([1, -1, 1], [-1], [1, 1]):
        env.reset(seed=1)
        for action in plan:
            env.step(np.int64(action))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about authors, and of folders it leaves to the collector
        env.create_dataset("our/count-v0", algorithm_name="by hand", author="A. Nonymous")
        env.close()
        del env
        gc.collect()
    assert recognise(root / "our/count-v0") == FORMATS[data_format]
    source = read(root / "our/count-v0")
    found = Dataset.join(source.parts)
    assert source.notes == []
    assert found.actions == ("-1", "0", "1")
    np.testing.assert_array_equal(found.obs[:, 0], [0, 1, 2, 3, 0, 1, 0, 1, 2])
    np.testing.assert_array_equal(found.obs[:, 1], found.obs[:, 0] * 10)
    assert found.obs.dtype == np.float32
    np.testing.assert_array_equal(found.action, [2, 0, 2, -1, 0, -1, 2, 2, -1])
    np.testing.assert_array_equal(found.reward, [1.125, 1.875, 3.125, 0, 0.875, 0, 1.125, 2.125, 0])
    np.testing.assert_array_equal(found.offsets, [0, 4, 6, 9])
    np.testing.assert_array_equal(found.terminated, [True, False, False])
    assert found.legal is not None
    np.testing.assert_array_equal(found.legal[:, 1], [0, 1, 0, 1, 0, 1, 0, 1, 0])
    assert found.legal[:, [0, 2]].all()
    assert found.provenance["dataset_id"] == "our/count-v0"
    assert found.provenance["algorithm_name"] == "by hand"
    assert found.provenance["source"] == "count-v0"


def made(name: str, space: spaces.Space, seen: list[Any], data_format: str, **more: Any) -> None:
    """A dataset of the minari package; every episode has the actions 1, 0, 1, ..."""
    buffers = []
    for observations in seen:
        steps = len(next(iter(leaves(observations)))) - 1
        last = np.arange(steps) == steps - 1
        given = {"terminations": last, "truncations": np.zeros(steps, bool), **more}
        actions = (np.arange(steps) + 1) % 2
        buffers.append(
            EpisodeBuffer(
                observations=observations, actions=actions, rewards=np.ones(steps), **given
            )
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(
            name,
            buffers,
            observation_space=space,
            action_space=spaces.Discrete(2),
            data_format=data_format,
        )


def leaves(tree: Any) -> Any:
    if isinstance(tree, dict | tuple):
        for inner in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(inner)
    else:
        yield tree


@pytest.mark.parametrize("data_format", FORMATS)
def test_categories_are_indices(root: Path, data_format: str) -> None:
    made("x-v0", spaces.Discrete(5, start=-2), [np.array([-2, 2, 0])], data_format)
    found = load(root / "x-v0")
    np.testing.assert_array_equal(found.obs, [[0], [4], [2]])
    assert found.features == Features(
        (Feature("observation", "category", categories=("-2", "-1", "0", "1", "2")),)
    )
    write(found, root / "y", FORMATS[data_format])
    again = load(root / "y")
    np.testing.assert_array_equal(again.obs, found.obs)
    assert (again.features, again.obs.dtype) == (found.features, found.obs.dtype)


@pytest.mark.parametrize("data_format", FORMATS)
def test_dicts_and_tuples_are_joined(root: Path, data_format: str) -> None:
    inner = {
        "speed": spaces.Box(-9, 9, (2,), np.float32),
        "gear": spaces.Discrete(3),
        "on": spaces.Tuple((spaces.MultiBinary(2), spaces.MultiDiscrete([2, 4]))),
    }
    space = spaces.Dict(OrderedDict(inner))  # a plain dict would be sorted
    seen = {
        "speed": np.array([[0.1, 0.2], [0.3, 0.4]], np.float32),
        "gear": np.array([2, 1]),
        "on": (np.array([[1, 0], [0, 1]], np.int8), np.array([[1, 3], [0, 2]])),
    }
    made("x-v0", space, [seen], data_format)
    found = load(root / "x-v0")
    assert found.features is not None
    assert found.features.names == [
        "gear", "on.0[0]", "on.0[1]", "on.1[0]", "on.1[1]", "speed[0]", "speed[1]",
    ]  # fmt: skip
    assert [column.size for column in found.features.columns] == [3, 1, 1, 2, 4, 1, 1]
    speeds = seen["speed"].astype(np.float64)  # type: ignore[attr-defined]
    expected = np.concatenate([[[2, 1, 0, 1, 3], [1, 0, 1, 0, 2]], speeds], axis=1)
    np.testing.assert_array_equal(found.obs, expected)


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("shape", [(32, 40), (36, 32, 3)])
@pytest.mark.parametrize("noisy", [True, False])
def test_jpeg_frames_are_what_minari_sees(
    root: Path, data_format: str, shape: tuple[int, ...], noisy: bool
) -> None:
    """Frames of equal size lie in a table, others as values of variable length."""
    frames = np.random.default_rng(0).integers(0, 256, (4, *shape)).astype(np.uint8)
    if not noisy:
        frames = np.broadcast_to(frames[:1], frames.shape)
    made("x-v0", spaces.Box(0, 255, shape, np.uint8), [frames, frames[::-1]], data_format)
    source = read(root / "x-v0")
    found = Dataset.join(source.parts)
    theirs = np.concatenate([episode.observations for episode in minari.load_dataset("x-v0")])
    np.testing.assert_array_equal(found.obs, theirs)
    assert found.obs.dtype == np.uint8
    assert np.abs(found.obs[:4].astype(int) - frames).max() > 0
    assert len(source.notes) == 1
    assert "JPEG" in source.notes[0]


@pytest.mark.parametrize("data_format", FORMATS)
def test_an_end_that_is_not_said_is_a_truncation(root: Path, data_format: str) -> None:
    space = spaces.Box(-9, 9, (1,), np.float32)
    seen = np.arange(3, dtype=np.float32)[:, None]
    made("x-v0", space, [seen, seen], data_format, terminations=np.zeros(2, bool))
    source = read(root / "x-v0")
    found = Dataset.join(source.parts)
    np.testing.assert_array_equal(found.terminated, [False, False])
    assert len(source.notes) == 1
    assert "episode 0 ends neither terminated nor truncated" in source.notes[0]
