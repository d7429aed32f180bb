"""NumPy archives written here: what is in them, what is streamed, and what does not fit."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rbve.data import Dataset, Episode, load, write
from rbve.data.features import Feature, Features
from rbve.data.formats import npz, read, recognise
from rbve.data.source import Source


def two_episodes() -> Dataset:
    """A terminated one of 2 steps and a fragment of one, whose end was not seen."""
    return Dataset.from_episodes(
        [
            Episode(
                np.array([[1, 0], [2, 1], [3, 0]], np.float64),
                np.array([1, 0, -1]),
                np.array([0.5, -2, 0]),
                terminated=True,
                propensity=np.array([0.25, 0.5, 1]),
            ),
            Episode(
                np.array([[4, 1], [4, 1]], np.float64),
                np.array([0, 1]),
                np.array([7, 0]),
                terminated=False,
                complete=False,
                episode_return=12.5,
                propensity=np.array([1, 0.75]),
                final_observed=False,
            ),
        ],
        ["gauche", 'dröite, "x"'],
        {"source": "log"},
        Features(
            (
                Feature("speed", mean=2.0, scale=0.5),
                Feature("ward", "category", categories=("a", "b")),
            )
        ),
    )


def written(tmp_path: Path) -> Path:
    write(two_episodes(), tmp_path / "d.npz")
    return tmp_path / "d.npz"


# Written and read


def test_arrays_are_plain_numpy(tmp_path: Path) -> None:
    write(two_episodes(), tmp_path / "d.npz")
    with np.load(tmp_path / "d.npz", allow_pickle=False) as arrays:
        held = dict(arrays)
    expected: dict[str, Any] = {
        "obs": np.array([[1, 0], [2, 1], [3, 0], [4, 1], [4, 1]], "<f8"),
        "action": np.array([1, 0, -1, 0, 1], "<i4"),
        "reward": np.array([0.5, -2, 0, 7, 0], "<f4"),
        "length": np.array([3, 2], "<i8"),
        "terminated": np.array([True, False]),
        "complete": np.array([True, False]),
        "episode_return": np.array([-1.5, 12.5], "<f8"),
        "final_observed": np.array([True, False]),
        "propensity": np.array([0.25, 0.5, 1, 1, 0.75], "<f4"),
    }
    meta = json.loads(held.pop("meta").tobytes())
    assert set(held) == set(expected)
    for name, values in expected.items():
        assert held[name].dtype == values.dtype, name
        np.testing.assert_array_equal(held[name], values)
    assert meta == {
        "format": "rbve",
        "schema": 1,
        "actions": ["gauche", 'dröite, "x"'],
        "features": [
            {"name": "speed", "kind": "number", "mean": 2.0, "scale": 0.5},
            {"name": "ward", "kind": "category", "categories": ["a", "b"]},
        ],
        "provenance": {"source": "log"},
    }
    with zipfile.ZipFile(tmp_path / "d.npz") as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.testzip() is None
    assert [entry.name for entry in tmp_path.iterdir()] == ["d.npz"]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_was_written_comes_back_however_numpy_saves_it(
    tmp_path: Path, save: Callable[..., None]
) -> None:
    write(two_episodes(), tmp_path / "d.npz")
    with np.load(tmp_path / "d.npz", allow_pickle=False) as arrays:
        save(tmp_path / "again.npz", **arrays)
    assert recognise(tmp_path / "again.npz") == "npz"
    found, given = load(tmp_path / "again.npz"), two_episodes()
    np.testing.assert_array_equal(found.obs, given.obs)
    assert found.obs.dtype == np.float64
    np.testing.assert_array_equal(found.action, [1, 0, -1, 0, 1])
    np.testing.assert_array_equal(found.offsets, [0, 3, 5])
    np.testing.assert_array_equal(found.finals_known, [True, False])
    np.testing.assert_array_equal(found.episode_return, [-1.5, 12.5])
    assert (found.actions, found.features) == (given.actions, given.features)
    assert found.provenance == {"source": "log"}
    assert found.executed is None
    assert found.legal is None


def counting(episodes: int, steps: int) -> Iterator[Episode]:
    for index in range(episodes):
        rows = np.arange(steps + 1) + 1000 * index
        yield Episode(
            rows[:, None].astype(np.float32),
            np.append(rows[:-1] % 3, -1),
            np.append(rows[:-1], 0).astype(np.float32),
            terminated=index % 2 == 0,
        )


@pytest.mark.parametrize("episodes_at_once", [1, 7, 1 << 16])
def test_parts_hold_whole_episodes_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, episodes_at_once: int
) -> None:
    monkeypatch.setattr(npz, "EPISODES_AT_ONCE", episodes_at_once)
    monkeypatch.setattr(npz, "PART_BYTES", 12 * 8)  # 8 rows of obs, action and reward
    data = Dataset.from_episodes(counting(20, 3), 3)
    write(data, tmp_path / "d.npz")
    source = read(tmp_path / "d.npz")
    assert (source.total, source.position()) == (80, 0)
    parts = list(source.parts)
    assert source.position() == 80
    counts = [part.num_episodes for part in parts]
    assert counts == {1: [1] * 20, 7: [2, 2, 2, 1] * 2 + [2] * 3}.get(episodes_at_once, [2] * 10)
    found = Dataset.join(parts)
    np.testing.assert_array_equal(found.obs, data.obs)
    np.testing.assert_array_equal(found.offsets, np.arange(0, 81, 4))
    data.reward[4 * 17 + 2] = np.nan
    with pytest.raises(ValueError, match=r"episode 17, step 2: the reward is not finite"):
        load(changed(tmp_path / "d.npz", reward=data.reward))


def test_memory_is_that_of_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "PART_BYTES", 1 << 18)
    frames = np.zeros((9, 64, 64), np.uint8)

    def parts() -> Iterator[Dataset]:
        for _ in range(400):
            episode = Episode(frames, np.append(np.zeros(8, int), -1), np.zeros(9), True)
            yield Dataset.from_episodes([episode], 2)

    tracemalloc.start()
    try:
        write(Source(parts()), tmp_path / "d.npz")
        rows = sum(len(part.action) for part in read(tmp_path / "d.npz").parts)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows == 3600
    assert (tmp_path / "d.npz").stat().st_size > 14e6
    assert peak < 6e6  # a part, and pieces of a megabyte that are copied


def test_overwriting_and_failing(tmp_path: Path) -> None:
    target = tmp_path / "d.npz"
    write(two_episodes(), target)
    before = target.read_bytes()
    with pytest.raises(ValueError, match=r"d\.npz: already exists; pass --overwrite"):
        write(two_episodes(), target)

    def broken() -> Iterator[Dataset]:
        yield Dataset.from_episodes(counting(2, 3), 3)
        raise OSError("No space left on device")

    for parts, message in [
        (broken(), "No space left"),
        (iter(()), r"d\.npz: not written, since there is no episode"),
        (
            iter([Dataset.from_episodes(counting(2, 3), 3), two_episodes()]),
            r"d\.npz: episodes from 2 on have the columns .*propensity",
        ),
        (
            iter([Dataset.from_episodes(counting(2, 3), 3), wide()]),
            r"d\.npz: episodes from 2 on have observations of float64, which the file's <f4 cannot",
        ),
    ]:
        with pytest.raises((OSError, ValueError), match=message):
            npz.write(Source(parts), target, overwrite=True)
        assert target.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["d.npz"]
    write(Dataset.from_episodes(counting(2, 3), 3), target, overwrite=True)
    assert load(target).num_episodes == 2
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(ValueError, match=r"folder\.npz: exists and is a folder"):
        write(two_episodes(), tmp_path / "folder.npz", "npz", overwrite=True)


def wide() -> Dataset:
    episodes = [e._replace(obs=e.obs.astype(np.float64)) for e in counting(1, 2)]
    return Dataset.from_episodes(episodes, 3)


# Damage


def changed(path: Path, **changes: Any) -> Path:
    """The archive with some arrays replaced, or left out where None."""
    with np.load(path, allow_pickle=False) as arrays:
        held = {**arrays, **changes}
    target = path.with_name("changed.npz")
    np.savez(target, **{name: values for name, values in held.items() if values is not None})
    return target


def meta(**changes: Any) -> np.ndarray:
    facts = {"format": "rbve", "schema": 1, "actions": ["a", "b"], "provenance": {}} | changes
    return np.frombuffer(json.dumps(facts).encode(), np.uint8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": None}, "array 'reward' is missing; there are meta, obs"),
        ({"length": np.array([3, 3])}, "array 'length': episode lengths do not fit 5 rows"),
        ({"length": np.array([3, 1])}, "array 'length': episode lengths do not fit 5 rows"),
        ({"length": np.array([2**62, 2])}, "array 'length': episode lengths do not fit 5 rows"),
        ({"length": np.array([2, 2])}, "array 'length': episode lengths do not fit 5 rows"),
        ({"length": np.array([5])}, "array 'terminated' has 2 rows, expected 1"),
        ({"reward": np.zeros(4, np.float32)}, "array 'reward' has 4 rows, expected 5"),
        ({"reward": np.zeros(5)}, "array 'reward' holds float64, not <f4"),
        ({"reward": np.zeros((5, 1), np.float32)}, r"array 'reward' has the shape \(1,\) a row"),
        ({"legal": np.ones((5, 3), bool)}, r"array 'legal' has the shape \(3,\) a row"),
        ({"obs": np.zeros((5, 0))}, r"array 'obs' has the shape \(0,\) a row, expected \(2,\)"),
        ({"obs": np.zeros((5, 3))}, r"array 'obs' has the shape \(3,\) a row, expected \(2,\)"),
        ({"obs": np.zeros((5, 2), complex)}, "array 'obs' holds complex128; it needs numbers"),
        ({"obs": np.full((5, 2), None)}, "array 'obs' holds Python objects; it needs numbers"),
        ({"obs": np.asfortranarray(np.zeros((5, 2)))}, "array 'obs' is stored by columns"),
        ({"obs": np.float64(0)}, r"array 'obs' has the shape \(\); it needs one row"),
        ({"obs": np.full((5, 2), np.nan)}, "episode 0, step 0: the observation is not finite"),
        ({"action": np.array([1, 0, -1, 0, 2], np.int32)}, "episode 1, step 1: action 2 is not"),
        ({"meta": np.zeros(4)}, "array 'meta' is not what was written"),
        ({"meta": np.zeros(4, np.uint8)}, "array 'meta' is not what was written"),
        ({"meta": meta(actions=["a", "a"])}, "array 'meta' is not what was written"),
        ({"meta": meta(actions=[])}, "array 'meta' is not what was written"),
        ({"meta": meta(provenance=None)}, "array 'meta' is not what was written"),
        ({"meta": meta(schema=2)}, "array 'meta': schema 2, and this version reads schema 1"),
        ({"meta": meta(features=[{}])}, "array 'meta': 'features' is not a list of columns"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=rf"changed\.npz: {message}"):
        load(changed(written(tmp_path), **changes))


def test_lengths_that_overflow(tmp_path: Path) -> None:
    write(Dataset.from_episodes(counting(4, 1), 3), tmp_path / "d.npz")
    lengths = np.array([2**62, 2**62, 2**62, 2**62 + 8])
    assert lengths.sum() == 8  # as are the rows
    with pytest.raises(ValueError, match="array 'length': episode lengths do not fit 8 rows"):
        load(changed(tmp_path / "d.npz", length=lengths))
